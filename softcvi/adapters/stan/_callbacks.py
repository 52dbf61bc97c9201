"""A program's log density as a function that JAX can call, batch and differentiate.

JAX converts what goes to and comes from a callback to the default precision of the
thread that runs it. A program in double precision inside a session in single precision,
as the search for a start is, would lose half of its digits: doubles travel as pairs of
32-bit words instead.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from softcvi.adapters.stan._program import AbstractProgram


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


# First guess of a step for differences of gradients, then the share of the curvature's
# own length scale that the second, final one takes: small enough for the error of the
# formula, far above the error of gradients that come from ODE solvers.
_FIRST_STEP = 1e-5
_SHARE_OF_SCALE = 2e-3


def log_density_of(program: AbstractProgram) -> Callable[[Float[Array, " d"]], Scalar]:
    """A JAX function of one unconstrained vector, with two derivatives.

    The gradient is Stan's own. Second derivatives, in forward mode over the gradient
    (as in ``jax.hessian``), are central differences of it. Batches made by ``jax.vmap``
    are one call.

    Args:
        program: The program to call.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from softcvi.adapters.stan import AbstractProgram
        >>> class Normal(AbstractProgram):
        ...     size = 2
        ...     names = (("x.1", "x.2"), (), ())
        ...
        ...     def log_density(self, rows):
        ...         return -0.5 * (rows**2).sum(1)
        ...
        ...     def log_density_and_gradient(self, rows):
        ...         return self.log_density(rows), -rows
        ...
        ...     def constrain(self, rows, seeds):
        ...         return rows
        ...
        ...     def unconstrain(self, parameters):
        ...         return parameters
        >>> jax.grad(log_density_of(Normal()))(jnp.array([1.0, 2.0])).tolist()
        [-1.0, -2.0]
    """
    host = _OnRows(program)

    @jax.custom_jvp
    def value(x):
        return host_call(host.values, ((),), x)[0]

    @jax.custom_jvp
    def value_and_gradient(x):
        return host_call(host.values_and_gradients, ((), x.shape), x)

    @value.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        log_density, gradient = value_and_gradient(x)
        return log_density, jnp.vdot(gradient, dx)

    @value_and_gradient.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        log_density, gradient = value_and_gradient(x)
        (turned,) = host_call(host.hessian_products, (x.shape,), x, dx)
        return (log_density, gradient), (jnp.vdot(gradient, dx), turned)

    return value


class _OnRows:
    """A program's functions on arrays of vectors, with any axes in front."""

    def __init__(self, program: AbstractProgram):
        self.program = program

    def values(self, x: np.ndarray) -> tuple[np.ndarray]:
        values = self.program.log_density(_rows(x))
        return (values.reshape(x.shape[:-1]),)

    def values_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = self.program.log_density_and_gradient(_rows(x))
        return values.reshape(x.shape[:-1]), gradients.reshape(x.shape)

    def hessian_products(
        self, x: np.ndarray, direction: np.ndarray
    ) -> tuple[np.ndarray]:
        """Products of the Hessian with directions, by differences of gradients."""
        shape = np.broadcast_shapes(x.shape, direction.shape)
        rows = _rows(np.broadcast_to(x, shape))
        directions = _rows(np.broadcast_to(direction, shape))
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        unit = directions / np.where(length > 0, length, 1.0)
        size = 1.0 + np.abs(np.sum(rows * unit, axis=1, keepdims=True))
        curvature = self._difference(rows, unit, _FIRST_STEP * size)
        along = np.abs(np.sum(unit * curvature, axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            scale = np.where(along > 0, 1 / np.sqrt(along), np.inf)
        # A tenth of the size is far enough for a direction without curvature.
        step = np.clip(_SHARE_OF_SCALE * scale, 1e-9 * size, 1e-1 * size)
        product = length * self._difference(rows, unit, step)
        return (product.reshape(shape),)

    def _difference(
        self, rows: np.ndarray, unit: np.ndarray, step: np.ndarray
    ) -> np.ndarray:
        both = np.concatenate([rows + step * unit, rows - step * unit])
        values, gradients = self.program.log_density_and_gradient(both)
        # A rejected point has no gradient, and so there is no difference.
        known = np.where(np.isfinite(values)[:, None], gradients, np.nan)
        half = len(rows)
        return (known[:half] - known[half:]) / (2 * step)


def _rows(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float64).reshape(-1, x.shape[-1])
