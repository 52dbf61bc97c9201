"""Mirror images of known places: other signs, and other orders of the same parts.

Loadings and their factors may change sign together, and the parts of a mixture model
may change places. No start near the first place need lead to such an image of it.
Nothing is assumed to be symmetric: an image only is a point to climb from.
"""

import itertools

import numpy as np
from jaxtyping import Float

from softcvi.starts._importance import LogDensity
from softcvi.starts._modes import Ends
from softcvi.starts._proposal import factor_of
from softcvi.targets import Structure

# Places whose images are looked at, the best first, and images of each.
_PLACES = 8
_MOST = 60
# Nats below the best place at which a point is still worth a path.
_WORTH = 30.0
# Distance from all places, in their standard deviations, times the root of the size.
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
