"""Funnels: parameters that set the scale of others, and coordinates without them.

The curvature of the log density along each parameter is measured at draws of what a
start has found. Where its logarithm is a linear function of another parameter, that one
sets the scale. The location and scale of its children then are regressed on the
parameters that are no children, and they are fitted relative to these: for a hierarchy
these are non-centred coordinates.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from softcvi.starts._base import Moments
from softcvi.starts._curvature import curvature
from softcvi.starts._double import Density, as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._importance import LogDensity, tempered_weights
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget, FunnelSpace
from softcvi.targets._cost import cost_of
from softcvi.targets._funnel import through_funnel

# Points that the program of the log density takes at once, as in a search.
_POINTS = 500
# Elementary operations that the look for funnels may take.
_BUDGET = 1e9
_DRAWS = 1000
# Points at which curvatures are measured: so many, and more for each parameter.
_MEASURED = (32, 2)
# Step of a difference, in standard deviations given all other parameters.
_STEP = 1e-3
# By how much a log scale must change per standard deviation of a parameter, and which
# share of its variance that must explain.
_EFFECT, _EXPLAINED = 0.15, 0.5
_MOST_PARENTS = 8
# Where locations and slopes are measured: log scales this much below typical ones.
_NECK = 3.0
_NEWTON_STEPS = 4
# Partial correlation above which two parameters are tied to each other.
_TIED = 0.1
# Points with a usable curvature that a regression needs, as a share of all.
_USABLE = 0.5


class _Relations(eqx.Module):
    parents: list[int]
    children: list[int]


def without_funnel(target: AbstractTarget, mode: Moments) -> AbstractTarget | None:
    """The target in coordinates relative to what sets scales; None if nothing does.

    Args:
        target: The target.
        mode: What a start has found.
    """
    if not (target.maps_by_space and target.has_gradient) or mode.covariance is None:
        return None
    size = target.structure.size
    density = as_density(target)
    if size < 2 or density.dtype != np.float64:
        return None  # differences need the digits
    with density.context():
        count = _MEASURED[0] + _MEASURED[1] * size
        if 2 * size * count * cost_of(density.program()) > _BUDGET:
            return None
        log_density = Evaluator.of(density, _POINTS)
        points = _typical_points(mode, log_density, count)
        if len(points) < count:
            return None
        widths = 1.0 / np.sqrt(np.diagonal(np.linalg.inv(mode.covariance)))
        curvatures = _curvatures(points, _STEP * widths, log_density)
        relations = _relations(points, curvatures)
        if not relations.children:
            return None
        space = _space(points, relations, density)
    return None if space is None else through_funnel(target, space)


def _typical_points(
    mode: Moments, log_density: LogDensity, count: int
) -> Float[np.ndarray, "n d"]:
    """Draws of the start's normal, chosen by their posterior weights."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(max(_DRAWS, 4 * count), mode.mean.size))
    draws = mode.mean + noise @ factor_of(mode.dense, 0.0).T
    ratios = log_density(draws) + 0.5 * np.sum(noise**2, axis=1)
    ratios = np.where(np.isfinite(ratios), ratios, -np.inf)
    if np.sum(np.isfinite(ratios)) < count:
        return draws[:0]
    weights = tempered_weights(ratios, needed=2 * count)
    count = min(count, int(np.sum(weights > 0)))
    return draws[rng.choice(len(draws), count, replace=False, p=weights)]


def _curvatures(
    points: Float[np.ndarray, "n d"],
    steps: Float[np.ndarray, " d"],
    log_density: LogDensity,
) -> Float[np.ndarray, "n d"]:
    """Minus the second derivatives along each parameter, by differences.

    No derivatives are compiled for it: most posteriors have no funnel.
    """
    n, d = points.shape
    moves = np.diag(steps)
    moved = points[:, None, :] + np.concatenate([moves, -moves])[None]
    values = log_density(moved.reshape(-1, d)).reshape(n, 2, d)
    middle = log_density(points)
    return -(values[:, 0] + values[:, 1] - 2 * middle[:, None]) / steps**2


def _relations(
    points: Float[np.ndarray, "n d"], curvatures: Float[np.ndarray, "n d"]
) -> _Relations:
    """Which parameters set the scale of which, the most important first."""
    d = points.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        log_scales = -0.5 * np.log(curvatures)
    usable = np.isfinite(log_scales)
    z = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-300)
    left = np.where(usable, log_scales, 0.0)
    left = np.where(usable, left - left.sum(axis=0) / usable.sum(axis=0).clip(1), 0.0)
    enough = usable.mean(axis=0) > _USABLE
    parents: list[int] = []
    children: set[int] = set()
    for _ in range(_MOST_PARENTS):
        # effects[j, i]: of parameter i on the log scale of j.
        effects = left.T @ z / usable.sum(axis=0).clip(1)[:, None]
        total = np.mean(left**2, axis=0)[:, None] + 1e-300
        counts = (np.abs(effects) > _EFFECT) & (effects**2 / total > _EXPLAINED)
        counts &= enough[:, None] & ~np.eye(d, dtype=bool)
        counts[parents] = False  # a parent is not scaled in the same step
        counts[:, sorted(children)] = False
        strength = np.sum(np.where(counts, effects**2, 0.0), axis=0)
        best = int(np.argmax(strength))
        if not strength[best] > 0:
            break
        parents.append(best)
        children |= set(np.flatnonzero(counts[:, best]).tolist())
        # Take out what is explained by all parents so far.
        basis = z[:, parents]
        for j in range(d):
            rows = usable[:, j]
            design = np.column_stack([np.ones(rows.sum()), basis[rows]])
            fit = np.linalg.lstsq(design, log_scales[rows, j], rcond=None)[0]
            left[rows, j] = log_scales[rows, j] - design @ fit
    return _Relations(parents, sorted(children))


def _space(
    points: Float[np.ndarray, "n d"], relations: _Relations, density: Density
) -> FunnelSpace | None:
    """Location and log scale of the children by regressions on the other parameters.

    They are made where the funnel is narrow: what is wrong there is wrong by many of
    its widths, and where it is wide data may hold the children.
    """
    hessians = np.stack([curvature(point, density)[0] for point in points])
    children = _without_hubs(np.array(relations.children), hessians)
    others = np.setdiff1d(np.arange(points.shape[1]), children)
    is_parent = np.isin(others, relations.parents)
    narrow = points.copy()
    narrow[:, relations.parents] += _into_the_neck(points, relations.parents, hessians)
    for _ in range(_NEWTON_STEPS):
        found = [_conditional(point, children, density) for point in narrow]
        usable = np.array([one is not None for one in found])
        if np.mean(usable) < _USABLE:
            return None
        covariances, steps = map(np.stack, zip(*filter(None, found), strict=True))
        narrow = narrow[usable]
        narrow[:, children] += steps
    log_scales = 0.5 * np.log(np.diagonal(covariances, axis1=1, axis2=2))
    centre = np.mean(points, axis=0)
    away = narrow[:, others] - centre[others]
    loc_slope, log_scale_slope = np.zeros((2, len(children), len(others)))
    centre[children], loc_slope[:, ~is_parent] = _regressed(
        away[:, ~is_parent], narrow[:, children]
    )
    log_scale_slope[:, is_parent] = _regressed(away[:, is_parent], log_scales)[1]
    structure = density.target.structure
    dtype = jnp.result_type(*structure.dtypes)
    return FunnelSpace(
        density.target.space,
        structure,
        tuple(children.tolist()),
        *(jnp.asarray(a, dtype) for a in (centre, loc_slope, log_scale_slope)),
    )


def _into_the_neck(
    points: Float[np.ndarray, "n d"],
    parents: list[int],
    hessians: Float[np.ndarray, "n d d"],
) -> Float[np.ndarray, " p"]:
    """By how much to move the parents for scales much smaller than typical ones."""
    curvatures = np.abs(np.diagonal(hessians, axis1=1, axis2=2))
    log_scales = -0.5 * np.log(np.maximum(curvatures, np.finfo(float).tiny))
    away = points[:, parents] - points[:, parents].mean(axis=0)
    slopes = _regressed(away, log_scales)[1]
    # Of all parameters the one that each parent has the largest effect on.
    strongest = slopes[np.argmax(np.abs(slopes), axis=0), np.arange(len(parents))]
    return -_NECK / strongest


def _conditional(
    point: Float[np.ndarray, " d"], children: Int[np.ndarray, " c"], density: Density
) -> tuple[Float[np.ndarray, "c c"], Float[np.ndarray, " c"]] | None:
    """Covariance of the children given the others, and Newton's step to their mode."""
    hessian, gradient = curvature(point, density)
    precision = -hessian[np.ix_(children, children)]
    if not np.all(np.isfinite(precision)) or np.linalg.eigvalsh(precision)[0] <= 0:
        return None
    covariance = np.linalg.inv(precision)
    return covariance, covariance @ gradient[children]


def _without_hubs(
    children: Int[np.ndarray, " c"], hessians: Float[np.ndarray, "n d d"]
) -> Int[np.ndarray, " fewer"]:
    """Children without those that set the location of others.

    The mean of a population is as narrow given its members as these are, but it is them
    that follow it: it is tied to many of them, and each of them to little else.
    """
    widths = 1.0 / np.sqrt(np.abs(np.diagonal(hessians, axis1=1, axis2=2)))
    tied = np.median(np.abs(hessians) * widths[:, :, None] * widths[:, None, :], axis=0)
    is_tied = (tied > _TIED) & ~np.eye(len(tied), dtype=bool)
    while len(children) > 1:
        among = is_tied[np.ix_(children, children)]
        degrees = among.sum(axis=1)
        beside = among @ degrees / np.maximum(degrees, 1)
        is_hub = (degrees > 1) & (degrees >= 2 * beside)
        if not is_hub.any():
            break
        children = np.delete(children, np.argmax(np.where(is_hub, degrees, 0)))
    return children


def _regressed(
    x: Float[np.ndarray, "n g"], y: Float[np.ndarray, "n c"]
) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c g"]]:
    """Intercepts and slopes by least squares."""
    design = np.column_stack([np.ones(len(x)), x])
    fit = np.linalg.lstsq(design, y, rcond=None)[0]
    return fit[0], fit[1:].T
