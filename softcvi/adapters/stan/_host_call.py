"""Calls from compiled JAX programs to the host that keep double precision.

JAX converts what goes to and comes from a callback to the default precision of the
thread that runs it. A program in double precision inside a session in single precision,
as the search for a start is, would lose half of its digits: doubles travel as pairs of
32-bit words instead.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def host_call(
    function: Callable[..., tuple[np.ndarray, ...]],
    shapes: tuple[tuple[int, ...], ...],
    *args: Array,
) -> tuple[Array, ...]:
    """Call a function of NumPy arrays of doubles; a batch is one call.

    Args:
        function: Takes as many arrays as there are ``args``, each with the same number
            of batch axes in front, some of them perhaps of length one, and returns one
            array with these axes for each of ``shapes``.
        shapes: Shapes of the results without batch axes.
        *args: Vectors, all of the dtype that the results shall have.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.arange(3.0)
        >>> host_call(lambda x: (x.sum(-1),), ((),), x)[0].tolist()
        3.0
    """
    dtype = jnp.result_type(*args)
    host = _Host(function, dtype == jnp.float64)
    if not host.as_words:
        results = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)
        return jax.pure_callback(host, results, *args, vmap_method="expand_dims")
    results = tuple(jax.ShapeDtypeStruct((*s, 2), jnp.uint32) for s in shapes)
    words = [jax.lax.bitcast_convert_type(arg, jnp.uint32) for arg in args]
    out = jax.pure_callback(host, results, *words, vmap_method="expand_dims")
    return tuple(jax.lax.bitcast_convert_type(part, jnp.float64) for part in out)


class _Host:
    """The function with its arguments and results in the form in which they travel."""

    def __init__(self, function: Callable, as_words: bool):
        self.function = function
        self.as_words = as_words

    def __call__(self, *args) -> tuple[np.ndarray, ...]:
        out = self.function(*(self._received(arg) for arg in args))
        return tuple(self._sent(part) for part in out)

    def _received(self, arg) -> np.ndarray:
        arg = np.asarray(arg)
        if not self.as_words:
            return arg.astype(np.float64)
        return np.ascontiguousarray(arg).view(np.float64)[..., 0]

    def _sent(self, part: np.ndarray) -> np.ndarray:
        if not self.as_words:
            # Far out a log density may exceed single precision: infinite it is.
            with np.errstate(over="ignore"):
                return np.asarray(part, np.float32)
        doubles = np.ascontiguousarray(part, np.float64)
        return doubles.view(np.uint32).reshape(*np.shape(part), 2)
