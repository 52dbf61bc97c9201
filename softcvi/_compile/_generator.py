"""JAX's default generator, computed elementwise as a part of the program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.extend import random as extend_random
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import batching, mlir
from jaxtyping import Array, PRNGKeyArray, UInt32

from softcvi._compile._switch import is_plain

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _threefry(key: UInt32[Array, " 2"], x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011), elementwise."""
    words = [
        lax.broadcast(lax.index_in_dim(key, i, keepdims=False), x0.shape)
        for i in range(2)
    ]
    return tuple(_threefry_p.bind(*words, x0, x1))


def threefry_rounds(words, ops, constant):
    """The 20 rounds, by the operations of a library on its numbers."""
    first, second, x0, x1 = words
    schedule = first, second, ops.xor(ops.xor(first, second), constant(_PARITY))
    x0, x1 = ops.add(x0, first), ops.add(x1, second)
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = ops.add(x0, x1)
            left = ops.shift_left(x1, constant(rotation))
            right = ops.shift_right_logical(x1, constant(32 - rotation))
            x1 = ops.xor(ops.or_(left, right), x0)
        x0 = ops.add(x0, schedule[(group + 1) % 3])
        x1 = ops.add(ops.add(x1, schedule[(group + 2) % 3]), constant(group + 1))
    return x0, x1


# One operation for JAX, which is written out when a program is lowered: to trace and
# to lower a hundred by JAX takes five times as long, for each draw of each program.
_threefry_p = core.Primitive("softcvi_threefry2x32")
_threefry_p.multiple_results = True
_threefry_p.def_impl(jax.jit(lambda *words: tuple(_threefry_p.bind(*words))))


@_threefry_p.def_abstract_eval
def _shapes(first, second, x0, x1):
    return x0, x1


def _batched(words, axes):
    [size] = {
        word.shape[axis]
        for word, axis in zip(words, axes, strict=True)
        if axis is not None
    }
    moved = [
        batching.bdim_at_front(word, axis, size)
        for word, axis in zip(words, axes, strict=True)
    ]
    return _threefry_p.bind(*moved), (0, 0)


batching.primitive_batchers[_threefry_p] = _batched


def _lowered(ctx, first, second, x0, x1):
    kind = mlir.ir.RankedTensorType(first.type)

    @functools.cache
    def constant(number: int):
        word = mlir.ir.IntegerAttr.get(kind.element_type, number)
        return stablehlo.constant(mlir.ir.DenseElementsAttr.get_splat(kind, word))

    return threefry_rounds((first, second, x0, x1), stablehlo, constant)


mlir.register_lowering(_threefry_p, _lowered)


def _counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Running number of each element, as high and low words."""
    zeros = low = lax.full(shape, 0, jnp.uint32)
    stride = 1
    for axis in reversed(range(len(shape))):
        position = lax.broadcasted_iota(jnp.uint32, shape, axis)
        if stride > 1:
            position = lax.add(low, lax.mul(position, np.uint32(stride)))
        low = position
        stride *= shape[axis]
    if stride >= 2**32:
        raise ValueError(
            "more than 2**32 random numbers at once; draw fewer particles."
        )
    return zeros, low


def _once(value: Array) -> Array:
    return jax.lax.optimization_barrier(value)


def _seed(seed: Array) -> UInt32[Array, " 2"]:
    return jnp.stack(_words(seed))


def _words(number: Array) -> tuple[Array, Array]:
    """High and low word of a number."""
    low = lax.convert_element_type(number, jnp.uint32)
    return lax.full_like(low, 0), low


def _split(key: UInt32[Array, " 2"], shape: tuple[int, ...]) -> UInt32[Array, "... 2"]:
    # New keys are computed once: without the barrier every draw would redo its keys.
    return _once(jnp.stack(_threefry(key, *_counters(shape)), axis=-1))


def _fold_in(key: UInt32[Array, " 2"], data: Array) -> UInt32[Array, " 2"]:
    words = jnp.stack(_threefry(key, *_words(data)))
    # On a GPU doing two words again where they are used costs less than a kernel.
    return _once(words) if jax.default_backend() == "cpu" else words


def _random_bits(
    key: UInt32[Array, " 2"], bit_width: int, shape: tuple[int, ...]
) -> Array:
    high, low = _threefry(key, *_counters(shape))
    if bit_width == 64:
        return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)
    bits = lax.bitwise_xor(high, low)
    return bits if bit_width == 32 else bits.astype(jnp.dtype(f"uint{bit_width}"))


@functools.cache
def _implementation():
    return extend_random.define_prng_impl(
        key_shape=(2,),
        seed=_seed,
        split=_split,
        random_bits=_random_bits,
        fold_in=_fold_in,
        name="softcvi_threefry",
        tag="sct",
    )


def fused(key: PRNGKeyArray) -> PRNGKeyArray:
    """The same key with the same numbers, computed elementwise.

    Keys of another generator are returned as they are.

    Args:
        key: A key of JAX's default generator.

    Example:
        >>> import jax
        >>> key = jax.random.key(0)
        >>> fast = jax.random.normal(fused(key))
        >>> bool(fast == jax.random.normal(key))
        True
    """
    if is_plain() or str(jax.random.key_impl(key)) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_implementation())
