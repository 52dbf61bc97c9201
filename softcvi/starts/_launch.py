"""Where Newton paths begin: near, far, and around what was found already."""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.starts._double import double_precision
from softcvi.starts._importance import LogDensity
from softcvi.starts._modes import Ends
from softcvi.targets import AbstractTarget

# Distances from a known place, in its own standard deviations.
_RADII = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_RADII_OF_AXES = 100.0
# Tried for each start until one has a finite density.
_TRIES = 8


def own_starts(
    key: PRNGKeyArray, target: AbstractTarget, n: int
) -> Float[np.ndarray, "n d"]:
    """The target's own starting points: prior draws where the model has them."""
    # In the target's own precision: a model that closes over NumPy arrays cannot be
    # traced in two.
    own = jnp.result_type(*target.structure.dtypes)
    with double_precision(own == jnp.float64):
        points = _own_starts(key, n, target)
    return np.asarray(points, np.float64)


@functools.partial(rarely_run, effort=0)
def _own_starts(
    key: PRNGKeyArray, n: int, target: AbstractTarget
) -> Float[Array, "n d"]:
    ravel, keys = target.structure.ravel, jax.random.split(key, n)
    return jax.vmap(lambda k: ravel(target.initial_particle(k)))(keys)


def far_starts(
    rng: np.random.Generator,
    scales: Sequence[float],
    dim: int,
    n: int,
    ends: Ends | None = None,
) -> Float[np.ndarray, "n d"]:
    """Normal draws about the origin, each scale in turn.

    Places may lie further out than all scales, in units of their own. The distance of
    the furthest from the origin then is a scale, too: others may be as far.
    """
    widths = list(scales)
    if ends is not None:
        reach = float(np.max(np.linalg.norm(ends.means, axis=1))) / math.sqrt(dim)
        widths += [reach, 3 * reach] if reach > max(widths) else []
    sd = np.resize(np.asarray(widths), n)
    return sd[:, None] * rng.normal(size=(n, dim))


def starts_around(
    rng: np.random.Generator, ends: Ends, n: int
) -> Float[np.ndarray, "n d"]:
    """Points at several distances from every place, half along its widest axes."""
    best = [ends.members(place)[0] for place in range(ends.num_places)]
    dim = ends.means.shape[1]
    points = np.empty((n, dim))
    axes = {end: _axes(ends.covariances[end]) for end in best[:n]}
    for i in range(n):
        end = best[i % len(best)]
        radius = _RADII[(i // len(best)) % len(_RADII)]
        # From far out every direction leads to the widest of the places it faces, so
        # random ones tell more than axes there.
        if rng.uniform() < 0.5 and radius <= _RADII_OF_AXES:
            axis = dim - 1 - int(rng.integers(min(dim, 3)))
            direction = axes[end][:, axis] * rng.choice([-1.0, 1.0])
        else:
            unit = rng.normal(size=dim)
            direction = axes[end] @ (unit / np.linalg.norm(unit))
        points[i] = ends.means[end] + radius * direction
    return points


def _axes(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Principal axes in columns, each as long as its deviation; the widest last."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def first_finite(
    points: Float[np.ndarray, "m d"], n: int, log_density: LogDensity
) -> Float[np.ndarray, "n d"]:
    """As many points as asked for, those with a finite density first.

    Args:
        points: Candidates in the order of preference.
        n: How many to keep.
        log_density: The log density.
    """
    is_finite = np.isfinite(np.asarray(log_density(points)))
    order = np.argsort(~is_finite, kind="stable")
    return points[np.sort(order[:n])]


def candidates(n: int) -> int:
    """How many points to draw where so many with a finite density are wanted."""
    return _TRIES * n
