"""Where Newton paths begin: near, far, around what was found, and at its mirror images.

Loadings and their factors may change sign together, and the parts of a mixture model
may change places. No start near the first place need lead to such an image of it.
Nothing is assumed to be symmetric: an image only is a point to climb from.
"""

import functools
import itertools
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
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget, Structure

# Distances from a known place, in its own standard deviations.
_RADII = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_RADII_OF_AXES = 100.0
# Points drawn for each start, of which one with a finite density is taken.
_TRIES = 8
_SHRINK = 10.0 ** -np.arange(0.0, 10.0, 3.0)


def own_starts(
    key: PRNGKeyArray, target: AbstractTarget, n: int
) -> Float[np.ndarray, "n d"]:
    """The target's own starting points: prior draws where the model has them."""
    # In the target's own precision: a model that closes over NumPy arrays cannot be
    # traced in two precisions.
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
        # From far away a path leads to the widest place in its direction, so random
        # directions find more there than axes do.
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

    Where no point has one, all are drawn towards the origin until some have: parameters
    may be small in units of their own, and the density overflow further out.

    Args:
        points: Candidates in the order of preference.
        n: How many to keep.
        log_density: The log density.
    """
    for shrink in _SHRINK:
        is_finite = np.isfinite(np.asarray(log_density(shrink * points)))
        if np.any(is_finite):
            points = shrink * points
            break
    order = np.argsort(~is_finite, kind="stable")
    return points[np.sort(order[:n])]


def candidates(n: int) -> int:
    """How many points to draw to get this many with a finite density."""
    return _TRIES * n


# Most places whose images are tried, the best first, and most images of each.
_PLACES = 8
_MOST = 60
# A point may be this many nats below the best place to be worth a path.
_WORTH = 30.0
# Least distance from all places: standard deviations times the root of the dimension.
_APART = 2.0


def images(
    rng: np.random.Generator,
    log_density: LogDensity,
    ends: Ends,
    structure: Structure,
    keep: int,
) -> Float[np.ndarray, "m d"]:
    """Images of known places at which there is some density and no known place.

    Args:
        rng: Random generator.
        log_density: The log density.
        ends: What is known.
        structure: Shapes of the parameters, which tell what can change places.
        keep: Number of points to return at most.
    """
    best = np.array([ends.members(p)[0] for p in range(ends.num_places)])
    maps = _symmetries(rng, structure)
    points = np.concatenate(
        [
            sign * ends.means[end][order]
            for end in best[:_PLACES]
            for sign, order in maps
        ]
    )
    points = points.reshape(-1, structure.size)
    is_new = np.ones(len(points), bool)
    for end in best:
        inverse = np.linalg.inv(factor_of(ends.covariances[end]))
        z = (points - ends.means[end]) @ inverse.T
        is_new &= np.sum(z**2, axis=1) > _APART**2 * structure.size
    points = points[is_new]
    if not len(points):
        return points
    heights = np.asarray(log_density(np.concatenate([ends.means[best], points])))
    known, heights = heights[: len(best)], heights[len(best) :]
    heights = np.where(np.isfinite(heights), heights, -np.inf)
    order = np.argsort(-heights, kind="stable")
    order = order[heights[order] > np.max(known) - _WORTH]
    return points[order[:keep]]


def _symmetries(rng, structure: Structure) -> list[tuple[np.ndarray, np.ndarray]]:
    """Signs and orders to try: of all, of a site, of an index that sites share."""
    size = structure.size
    identity, plain = np.arange(size), np.ones(size)
    bounds = np.cumsum([0, *structure.sizes])
    sites = [
        identity[low:high].reshape(shape)
        for low, high, shape in zip(
            bounds[:-1], bounds[1:], structure.shapes, strict=True
        )
    ]
    flips = [identity, *(site.ravel() for site in sites if len(sites) > 1)]
    swaps = []
    for length in sorted({n for site in sites for n in site.shape if n > 1}):
        along = [
            np.moveaxis(site, site.shape.index(length), 0).reshape(length, -1)
            for site in sites
            if length in site.shape
        ]
        rows = np.concatenate(along, axis=1)
        flips += list(rows)
        swaps += [
            (rows[i], rows[j]) for i, j in itertools.combinations(range(length), 2)
        ]
    found = [(np.where(np.isin(identity, flip), -1.0, 1.0), identity) for flip in flips]
    for one, other in swaps:
        order = identity.copy()
        order[one], order[other] = other, one
        found.append((plain, order))
    if len(found) > _MOST:
        found = [found[i] for i in np.sort(rng.permutation(len(found))[:_MOST])]
    return found
