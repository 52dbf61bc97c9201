"""Workarounds for the compiler: the same numbers in less time.

Everything here changes how long a program takes to compile or to run, never what it
computes beyond rounding. ``SOFTCVI_PLAIN_COMPILE=1`` turns all of it off.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random as extend_random
from jaxtyping import Array, PRNGKeyArray, PyTree, UInt32

try:
    from jax import enable_x64 as enable_x64
except ImportError:  # before JAX 0.8
    from jax.experimental import enable_x64 as enable_x64


def rarely_run(function: Callable, effort: int = 1) -> Callable:
    """Compile a function quickly rather than well; inside a program it is part of it.

    The compiler's last passes take longer than they save where a program runs once.

    Args:
        function: A function of pytrees.
        effort: Of the compiler, 0 to 3: 0 for what does little even when it runs.

    Example:
        >>> rarely_run(lambda x: x + 1)(1)
        2
    """
    options = {"xla_backend_optimization_level": effort}
    compiled = eqx.filter_jit(function, compiler_options=options)

    @functools.wraps(function)
    def call(*args):
        leaves = jax.tree_util.tree_leaves(args)
        # Options belong to whole programs: JAX refuses them for a part of one.
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return function(*args) if traced else compiled(*args)

    return call


Options = dict[str, str | int]

# By default the host launches every step of a loop and asks whether there is another,
# which takes longer than the step where the step is small. As one graph the whole loop
# is launched at once.
_WHOLE_LOOPS: Options = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,"
    "CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
# And what does not wait for each other runs side by side.
_SIDE_BY_SIDE: Options = _WHOLE_LOOPS | {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"
}


def on_device(function: Callable) -> Callable:
    """Compile a loop; on a GPU as one graph.

    Args:
        function: A function of pytrees.

    Example:
        >>> on_device(lambda x: x + 1)(1)
        2
    """

    @functools.cache
    def compiled() -> Callable:
        # Only now: asking for the backend starts it, which importing must not do.
        return eqx.filter_jit(function, compiler_options=_options())

    @functools.wraps(function)
    def call(*args):
        return compiled()(*args)

    return call


@functools.cache
def _options() -> Options | None:
    if jax.default_backend() != "gpu":
        return None
    for options in (_SIDE_BY_SIDE, _WHOLE_LOOPS):
        try:
            jax.jit(lambda x: x + 1, compiler_options=options)(0.0)
        except (jax.errors.JaxRuntimeError, ValueError, RuntimeError):
            continue
        return options
    return None  # A version of XLA that knows other names: slower, not wrong.


def computed_once(key: PRNGKeyArray, tree: PyTree, *, on_gpu: bool = True) -> PyTree:
    """The same numbers, divided by ones that the compiler does not know to be ones.

    XLA's CPU would rather compute draws and log densities anew for every use (each
    observation, labels, predictions, the report) than store them; a division it
    computes once. The step of linear regression takes two thirds of the time, that of
    eight schools three quarters (with JAX 0.12 two fifths), and with the ELBO a third.
    A GPU draws again in less time than it takes to store and read: linear regression's
    step takes a third more there if draws are divided.
    """
    if not on_gpu and jax.default_backend() == "gpu":
        return tree
    some_bits = jax.random.key_data(key).ravel()[0]

    def divided(leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        # A one for each: division by a single number becomes a product, which is cheap.
        numbers = jnp.arange(leaf.size, dtype=leaf.dtype).reshape(leaf.shape)
        return leaf / jnp.minimum(1.0 + some_bits.astype(leaf.dtype) + numbers, 1.0)

    return jax.tree_util.tree_map(divided, tree)


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
        >>> import jax, softcvi
        >>> key = jax.random.key(0)
        >>> fast = jax.random.normal(softcvi.fitting.fused(key))
        >>> bool(fast == jax.random.normal(key))
        True
    """
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_implementation())
