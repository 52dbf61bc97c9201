"""Boxes in flat parts of a support, where there is nothing to climb."""

import numpy as np
from jaxtyping import Float

from softcvi.starts._importance import LogDensity
from softcvi.starts._modes import Ends

# Distances at which the end of the support is looked for, in each direction, relative
# to the size of the coordinate; and halvings of the interval that it is in.
_SMALL = 1e-3
_DISTANCES = 2.0 ** np.arange(-24, 25)
_HALVINGS = 6
_DRAWS = 64


def boxes_around(
    rng: np.random.Generator,
    log_density: LogDensity,
    points: Float[np.ndarray, "m d"],
    count: int,
) -> Ends:
    """For each point a box along the axes, as wide as the support is around it.

    Args:
        rng: Random generator.
        log_density: The log density.
        points: Points; those outside of the support are left out.
        count: What each counts for.

    Returns:
        The boxes that are bounded.
    """
    dim = points.shape[1]
    centres, half = points.copy(), np.empty_like(points)
    if len(points):
        is_kept = np.isfinite(np.asarray(log_density(points)))
        centres, half = centres[is_kept], half[is_kept]
    for axis in range(dim):
        if not len(centres):
            return Ends.none(dim)
        up = _reach(log_density, centres, axis, 1.0)
        down = _reach(log_density, centres, axis, -1.0)
        is_kept = np.isfinite(up + down) & (up + down > 0)
        half[:, axis] = 0.5 * (up + down)
        centres, half = centres[is_kept], half[is_kept]
        centres[:, axis] += 0.5 * (up[is_kept] - down[is_kept])
    if not len(centres):
        return Ends.none(dim)
    noise = rng.uniform(-1, 1, size=(_DRAWS, 1, dim))
    draws = (centres + noise * half).reshape(-1, dim)
    values = np.asarray(log_density(draws), np.float64).reshape(_DRAWS, -1)
    inside = np.isfinite(values)
    is_kept = np.any(inside, axis=0)
    centres, half = centres[is_kept], half[is_kept]
    values, inside = values[:, is_kept], inside[:, is_kept]
    mean = np.sum(np.where(inside, values, 0.0), axis=0) / np.sum(inside, axis=0)
    # The bound of the even density on what is inside of box and support.
    volumes = np.sum(np.log(2 * half), axis=1) + np.log(np.mean(inside, axis=0))
    return Ends(
        centres,
        (half**2 / 3)[:, :, None] * np.eye(dim),
        mean + volumes,
        np.full(len(centres), count),
        np.arange(len(centres)),
    )


def _reach(
    log_density: LogDensity, centres: np.ndarray, axis: int, sign: float
) -> Float[np.ndarray, " m"]:
    """How far the support goes from each centre along an axis; inf if without end."""
    unit = np.abs(centres[:, axis]) + _SMALL

    def are_inside(distances: np.ndarray) -> np.ndarray:
        moved = np.repeat(centres[None], len(distances), axis=0)
        moved[:, :, axis] += sign * distances
        values = np.asarray(log_density(moved.reshape(-1, centres.shape[1])))
        return np.isfinite(values).reshape(len(distances), len(centres))

    inside = are_inside(_DISTANCES[:, None] * unit)
    first = np.argmax(~inside, axis=0)
    high = _DISTANCES[first] * unit
    low = np.where(first > 0, _DISTANCES[first - 1] * unit, 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_inside = are_inside(middle[None])[0]
        low, high = np.where(is_inside, middle, low), np.where(is_inside, high, middle)
    return np.where(np.all(inside, axis=0), np.inf, low)
