"""JAX's default generator, computed elementwise as a part of the program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random as extend_random
from jaxtyping import Array, PRNGKeyArray, UInt32

from softcvi._compile._switch import is_plain

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _threefry(key: UInt32[Array, " 2"], x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011), elementwise."""
    # ``lax`` and not operators: a hundred of those would take a tenth of a second to
    # trace, each time that a process makes its first step.
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x0, x1 = lax.add(x0, schedule[0]), lax.add(x1, schedule[1])
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = lax.add(x0, x1)
            left = lax.shift_left(x1, np.uint32(rotation))
            right = lax.shift_right_logical(x1, np.uint32(32 - rotation))
            x1 = lax.bitwise_xor(lax.bitwise_or(left, right), x0)
        x0 = lax.add(x0, schedule[(group + 1) % 3])
        x1 = lax.add(lax.add(x1, schedule[(group + 2) % 3]), np.uint32(group + 1))
    return x0, x1


def _counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Running number of each element, as high and low words."""
    low = jnp.zeros(shape, jnp.uint32)
    stride = 1
    for axis in reversed(range(len(shape))):
        position = jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
        low = low + position * jnp.uint32(stride)
        stride *= shape[axis]
    if stride >= 2**32:
        raise ValueError(
            "more than 2**32 random numbers at once; draw fewer particles."
        )
    return jnp.zeros(shape, jnp.uint32), low


def _once(value: Array) -> Array:
    return jax.lax.optimization_barrier(value)


def _seed(seed: Array) -> UInt32[Array, " 2"]:
    return jnp.stack([jnp.zeros((), jnp.uint32), jnp.asarray(seed).astype(jnp.uint32)])


def _split(key: UInt32[Array, " 2"], shape: tuple[int, ...]) -> UInt32[Array, "... 2"]:
    # New keys are computed once: without the barrier every draw would redo its keys.
    return _once(jnp.stack(_threefry(key, *_counters(shape)), axis=-1))


def _fold_in(key: UInt32[Array, " 2"], data: Array) -> UInt32[Array, " 2"]:
    words = jnp.stack(_threefry(key, *_seed(data)))
    # On a GPU doing two words again where they are used costs less than a kernel.
    return _once(words) if jax.default_backend() == "cpu" else words


def _random_bits(
    key: UInt32[Array, " 2"], bit_width: int, shape: tuple[int, ...]
) -> Array:
    high, low = _threefry(key, *_counters(shape))
    if bit_width == 64:
        return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)
    bits = high ^ low
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
