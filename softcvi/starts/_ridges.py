"""The highest path between two points: a line whose points have moved uphill.

The string method of E, Ren and Vanden-Eijnden (2007).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

_POINTS = 33
_ITERATIONS = 100
_SIZES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


def ridge_cost(cost: int) -> int:
    """Elementary operations of one ridge, by those of a log density."""
    return _POINTS * _ITERATIONS * (len(_SIZES) + 3) * cost


def line(
    a: Float[ArrayLike, " d"], b: Float[ArrayLike, " d"], points: int = _POINTS
) -> Float[Array | np.ndarray, "n d"]:
    """Evenly spaced points from one to the other."""
    return a + np.linspace(0.0, 1.0, points)[:, None] * (b - a)


def along(
    log_density: Callable[[Float[Array, " d"]], Array], path: Float[Array, "n d"]
) -> Float[Array, " n"]:
    """Log densities on a path; NaN counts as impossible."""
    values = jax.vmap(log_density)(path)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)


def ridge(
    log_density: Callable[[Float[Array, " d"]], Array],
    gradient: Callable[[Float[Array, " d"]], Float[Array, " d"]],
    a: Float[Array, " d"],
    b: Float[Array, " d"],
    factor: Float[Array, "d d"],
) -> Float[Array, "n d"]:
    """The line between two points after its points have moved uphill across it.

    Args:
        log_density: The log density.
        gradient: Its gradient.
        a: One end.
        b: The other.
        factor: Cholesky factor of a covariance, in whose units distances are measured.
    """

    def density(y: Float[Array, " d"]) -> Array:
        return log_density(a + factor @ y)

    def relax(_, path):
        inner = path[1:-1]
        tangent = path[2:] - path[:-2]
        tangent = tangent / (jnp.linalg.norm(tangent, axis=1, keepdims=True) + 1e-30)
        slope = jax.vmap(lambda y: gradient(a + factor @ y) @ factor)(inner)
        slope = jnp.nan_to_num(slope, posinf=0.0, neginf=0.0)
        across = slope - jnp.sum(slope * tangent, axis=1, keepdims=True) * tangent
        length = jnp.linalg.norm(across, axis=1, keepdims=True)
        spacing = jnp.linalg.norm(jnp.diff(path, axis=0), axis=1).mean()
        steps = spacing * across / jnp.maximum(length, 1e-30)
        tried = inner + jnp.asarray(_SIZES)[:, None, None] * steps
        heights = jax.vmap(lambda points: along(density, points))(tried)
        best = jnp.argmax(heights, axis=0)
        inner = jnp.take_along_axis(tried, best[None, :, None], axis=0)[0]
        return _evenly_spaced(jnp.concatenate([path[:1], inner, path[-1:]]))

    end = jax.scipy.linalg.solve_triangular(factor, b - a, lower=True)
    path = jax.lax.fori_loop(0, _ITERATIONS, relax, line(jnp.zeros_like(end), end))
    return a + path @ factor.T


def _evenly_spaced(path: Float[Array, "n d"]) -> Float[Array, "n d"]:
    lengths = jnp.linalg.norm(jnp.diff(path, axis=0), axis=1)
    distance = jnp.concatenate([jnp.zeros(1, lengths.dtype), jnp.cumsum(lengths)])
    wanted = jnp.linspace(0.0, distance[-1], len(path))
    return jax.vmap(lambda column: jnp.interp(wanted, distance, column), 1, 1)(path)
