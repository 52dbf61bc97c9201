"""Ends of paths with a misleading curvature: bounded supports, rounding, flat boxes."""

import numpy as np
from jaxtyping import Float

from softcvi.starts._importance import LogDensity
from softcvi.starts._modes import Ends
from softcvi.starts._proposal import factor_of

_DRAWS = 16
# A normal is far too wide if more than this share of its draws is outside the support.
_MOSTLY = 0.75
_WIDTHS = 0.5 ** np.arange(10)
# Steps in units of rounding, and most nats that the log density may change over them.
_STEPS = 16.0
_NOISE = 10.0
# Distances at which the end of the support is looked for, in each direction, relative
# to the size of the coordinate; and halvings of the interval that it is in.
_SMALL = 1e-3
_DISTANCES = 2.0 ** np.arange(-24, 25)
_HALVINGS = 6
_DRAWS_IN_BOX = 64


def within_support(
    rng: np.random.Generator, log_density: LogDensity, ends: Ends
) -> Ends:
    """The same ends, narrowed until half of their draws are inside the support.

    Where the density is constant the curvature is zero, and the normal would cover the
    whole space, other blocks included.

    Args:
        rng: Random generator.
        log_density: The log density.
        ends: Where paths have ended.
    """
    if not len(ends.means):
        return ends
    noise = rng.normal(size=(_DRAWS, ends.means.shape[1]))
    factors = np.stack([factor_of(c) for c in ends.covariances])
    inside = _inside(log_density, ends.means, factors, noise)
    wide = np.flatnonzero(inside < 1 - _MOSTLY)
    if not len(wide):
        return ends
    means, covariances = _within_bounds(log_density, ends.means, ends.covariances, wide)
    factors = np.stack([factor_of(c) for c in covariances])
    elbos = ends.elbos.copy()
    for end in wide:
        shares = _inside(
            log_density,
            np.repeat(means[end : end + 1], len(_WIDTHS), axis=0),
            _WIDTHS[:, None, None] * factors[end],
            noise,
        )
        width = _WIDTHS[np.argmax(shares >= 0.5)] if np.any(shares >= 0.5) else 1.0
        covariances[end] = width**2 * covariances[end]
        height = float(np.asarray(log_density(means[end : end + 1]))[0])
        dim = len(factors[end])
        volume = np.linalg.slogdet(covariances[end])[1] + dim * np.log(2 * np.pi)
        elbos[end] = height + 0.5 * volume
    return Ends(means, covariances, elbos, ends.counts, ends.places)


def _within_bounds(
    log_density: LogDensity,
    means: Float[np.ndarray, "m d"],
    covariances: Float[np.ndarray, "m d d"],
    wide: np.ndarray,
) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "m d d"]]:
    """Some normals, as wide as the support in each coordinate in which they leave it.

    A density may be constant along one coordinate, such as the time of a change
    between two rows, and curved along the others, whose widths are right.
    """
    means, covariances = means.copy(), covariances.copy()
    dim = means.shape[1]
    for axis in range(dim):
        deviations = np.sqrt(covariances[wide, axis, axis])
        step = deviations[:, None] * (np.arange(dim) == axis)
        ahead, behind = means[wide] + step, means[wide] - step
        inside = np.isfinite(np.asarray(log_density(np.concatenate([ahead, behind]))))
        leaves = wide[~np.all(inside.reshape(2, -1), axis=0)]
        if not len(leaves):
            continue
        up = _reach(log_density, means[leaves], axis, 1.0)
        down = _reach(log_density, means[leaves], axis, -1.0)
        is_bounded = np.isfinite(up) & np.isfinite(down) & (up + down > 0)
        leaves, up, down = (array[is_bounded] for array in (leaves, up, down))
        uniform = (up + down) / np.sqrt(12.0)
        narrower = np.minimum(uniform / np.sqrt(covariances[leaves, axis, axis]), 1.0)
        covariances[leaves, axis, :] *= narrower[:, None]
        covariances[leaves, :, axis] *= narrower[:, None]
        means[leaves, axis] += np.where(narrower < 1, 0.5 * (up - down), 0.0)
    return means, covariances


def without_noise(
    rng: np.random.Generator, log_density: LogDensity, ends: Ends, eps: float
) -> Ends:
    """The same ends without those whose height is a rounding error.

    Far out a log density may be a small difference of huge numbers, and climbs end on
    top of its errors, or beside them, if draws around the end are on top.

    Args:
        rng: Random generator.
        log_density: The log density.
        ends: Where paths have ended.
        eps: Relative rounding of the parameters.
    """
    if not len(ends.means):
        return ends
    dim = ends.means.shape[1]
    factors = np.stack([factor_of(c) for c in ends.covariances])
    steps = 1 + _STEPS * eps * rng.uniform(-1, 1, size=(_DRAWS, dim))
    noise = rng.normal(size=(_DRAWS, dim))
    draws = ends.means[:, None] + np.einsum("mij,nj->mni", factors, noise)
    points = np.stack([ends.means[:, None] * steps, draws, draws * steps])
    values = np.asarray(log_density(points.reshape(-1, dim)), np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    at_ends, at_draws, beside = values.reshape(3, -1, _DRAWS)
    heights = np.max(at_ends, axis=1)
    is_noise = heights - np.min(at_ends, axis=1) > _NOISE
    is_rough = np.abs(at_draws - beside) > _NOISE
    is_noise |= np.any(is_rough & (at_draws > heights[:, None]), axis=1)
    return ends.among(~is_noise)


def _inside(
    log_density: LogDensity,
    means: Float[np.ndarray, "m d"],
    factors: Float[np.ndarray, "m d d"],
    noise: Float[np.ndarray, "n d"],
) -> Float[np.ndarray, " m"]:
    """Share of each normal's draws with a finite log density."""
    draws = means[:, None] + np.einsum("mij,nj->mni", factors, noise)
    values = np.asarray(log_density(draws.reshape(-1, means.shape[1])))
    return np.mean(np.isfinite(values).reshape(len(means), -1), axis=1)


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
    noise = rng.uniform(-1, 1, size=(_DRAWS_IN_BOX, 1, dim))
    draws = (centres + noise * half).reshape(-1, dim)
    values = np.asarray(log_density(draws), np.float64).reshape(_DRAWS_IN_BOX, -1)
    inside = np.isfinite(values)
    is_kept = np.any(inside, axis=0)
    centres, half = centres[is_kept], half[is_kept]
    values, inside = values[:, is_kept], inside[:, is_kept]
    mean = np.sum(np.where(inside, values, 0.0), axis=0) / np.sum(inside, axis=0)
    # The evidence lower bound of a uniform density on the box within the support.
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
