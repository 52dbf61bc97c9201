"""Scans around known places for places that no Newton path has reached.

By wide draws around them, and along lines that lead away from them.

Seen from a wide place, one that is narrower by a factor r fills a share of about
r^(d - 1) of the directions, at whatever distance it lies. A path costs some thousand
log densities, a line a few, so lines cover many more directions. Where the density
rises on the way out, or stays higher than on most other lines, a path may begin.
"""

import math

import equinox as eqx
import numpy as np
import scipy.special
from jaxtyping import Float

from softcvi.diagnostics import BroadMoments
from softcvi.starts._importance import Fitted, LogDensity, weighted_moments
from softcvi.starts._modes import Ends
from softcvi.starts._proposal import TMixture, factor_of, log_sum

# Points on each line, between these distances in the place's standard deviations.
_POINTS = 24
_RADII = (1.0, 1000.0)
# Lines with points at the same distances: their median is what to expect there.
_GROUP = 48
# Most places that lines begin at, the widest first.
_PLACES = 4
# Nats by which the log density must rise on the way out.
_RISE = 1.0
# Nats above the median of the lines, and the same in median absolute deviations.
_ABOVE = (3.0, 6.0)
# Most coordinates that change along a line which leaves the others fixed.
_FEW = 3
# Least distance between two suspects, as a share of that from the place.
_APART_ON_LINES = 0.3


def scan_lines(
    rng: np.random.Generator, log_density: LogDensity, ends: Ends, n: int, keep: int
) -> Float[np.ndarray, "m d"]:
    """Points outside known places from which a path may lead to another.

    Args:
        rng: Random generator.
        log_density: The log density.
        ends: What is known.
        n: Log densities to spend.
        keep: Number of points to return at most.
    """
    best = np.array([ends.members(place)[0] for place in range(ends.num_places)])
    sizes = [np.linalg.slogdet(ends.covariances[end])[1] for end in best]
    chosen = best[np.argsort(sizes, kind="stable")[::-1]][:_PLACES]
    lines = num_lines(n) // len(chosen)
    kept: list[np.ndarray] = []
    for turn, end in enumerate(chosen):
        centre, factor = ends.means[end], factor_of(ends.covariances[end])
        found = _suspects_on_lines(rng, log_density, centre, factor, lines)
        share = math.ceil(keep * (turn + 1) / len(chosen)) - len(kept)
        kept += _apart_from_each_other(found, centre, share)
    return np.array(kept).reshape(len(kept), ends.means.shape[1])


def num_lines(n: int) -> int:
    """Number of lines for so many log densities."""
    return n // _POINTS


def narrowest_on_lines(n: int, dim: int) -> float | None:
    """Width of the narrowest separate place that lines detect, relative to the widest.

    A line shows a place that is narrower by a factor r if it passes it at an angle of
    at most arcsin r, and one of its points is near enough. With three such
    lines expected, at least one comes with 95 % probability.

    Args:
        n: Log densities that were spent.
        dim: Number of parameters.

    Example:
        >>> [round(narrowest_on_lines(96_000, dim), 2) for dim in (2, 10)]
        [0.03, 0.6]
    """
    # Half of the lines have random directions.
    lines = num_lines(n) / 2
    step = math.log(_RADII[1] / _RADII[0]) / _POINTS
    ratios = np.geomspace(1e-4, 1.0, 200)
    shares = np.full(len(ratios), 0.5)
    if dim > 1:
        shares *= scipy.special.betainc(0.5 * (dim - 1), 0.5, ratios**2)
    met = lines * shares * np.minimum(1.0, 2 * ratios / step) >= 3.0
    return float(ratios[np.argmax(met)]) if np.any(met) else None


def _suspects_on_lines(rng, log_density, centre, factor, lines: int) -> np.ndarray:
    """Suspects on lines from one place, the most promising first."""
    ways = _directions(rng, factor, lines)
    step = math.log(_RADII[1] / _RADII[0]) / _POINTS
    # Another offset for every group: a narrow place may lie between two distances.
    offsets = np.repeat(rng.uniform(size=math.ceil(lines / _GROUP)), _GROUP)[:lines]
    radii = _RADII[0] * np.exp(step * (np.arange(_POINTS) + offsets[:, None]))
    points = centre + radii[:, :, None] * ways[:, None, :]
    inner = points.reshape(-1, centre.size)
    values = np.asarray(log_density(np.concatenate([centre[None], inner])), np.float64)
    values = np.where(np.isfinite(values), values, -np.inf)
    heights = values[1:].reshape(lines, _POINTS)
    rising = _rising(values[0], heights)
    above = _above(heights)
    ranked = [
        points[line, at]
        for score in (rising, above)
        for line, at in _peaks(score, heights)
    ]
    return np.array(ranked).reshape(len(ranked), centre.size)


def _directions(rng, factor, lines: int) -> Float[np.ndarray, "l d"]:
    """Directions in units of the place: in all coordinates, in few, in raw units."""
    dim = len(factor)
    unit = rng.normal(size=(lines, dim))
    kind = np.arange(lines) // _GROUP % 4
    # Places often differ in a few parameters only, which random directions rarely do.
    order = np.argsort(rng.uniform(size=(lines, dim)), axis=1)
    few = rng.integers(1, _FEW + 1, size=lines)
    unit = np.where((kind == 1)[:, None] & (order >= few[:, None]), 0.0, unit)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    deviations = np.sqrt(np.sum(factor**2, axis=1))
    raw = np.exp(np.mean(np.log(deviations)))
    return np.where(
        (kind == 1)[:, None],
        unit * deviations,
        np.where((kind == 3)[:, None], unit * raw, unit @ factor.T),
    )


def _rising(at_centre: float, heights: np.ndarray) -> np.ndarray:
    """How far the density has risen above its lowest value on the way."""
    before = np.concatenate(
        [np.full((len(heights), 1), at_centre), heights[:, :-1]], axis=1
    )
    lowest = np.minimum.accumulate(before, axis=1)
    is_inside = heights > -np.inf
    rise = heights - np.where(is_inside, lowest, 0.0)
    return np.where(is_inside & (rise > _RISE), rise, 0.0)


def _above(heights: np.ndarray) -> np.ndarray:
    """How far the density is above that of most lines at the same distance."""
    score = np.zeros_like(heights)
    for begin in range(0, len(heights), _GROUP):
        if begin // _GROUP % 2:
            continue  # lines in other units have nothing in common
        some = heights[begin : begin + _GROUP]
        finite = np.where(some > -np.inf, some, np.nan)
        if not np.all(np.any(np.isfinite(finite), axis=0)):
            finite = np.where(np.isnan(finite), np.nanmin(finite, initial=0.0), finite)
        median = np.nanmedian(finite, axis=0)
        typical = np.nanmedian(np.abs(finite - median), axis=0)
        excess = (finite - median) / (_ABOVE[0] + _ABOVE[1] * typical)
        score[begin : begin + _GROUP] = np.where(excess > 1.0, excess, 0.0)
    return score


def _peaks(score: np.ndarray, heights: np.ndarray) -> list[tuple[int, int]]:
    """The best point of every line that has one, those of high density first."""
    lines = np.flatnonzero(np.any(score > 0, axis=1))
    at = np.argmax(np.where(score > 0, heights, -np.inf), axis=1)
    lines = lines[np.argsort(-heights[lines, at[lines]], kind="stable")]
    return [(int(line), int(at[line])) for line in lines]


def _apart_from_each_other(
    points: np.ndarray, centre: np.ndarray, keep: int
) -> list[np.ndarray]:
    """The first of the points, none of them near another."""
    kept: list[np.ndarray] = []
    for point in points:
        if len(kept) >= keep:
            break
        reach = _APART_ON_LINES * np.linalg.norm(point - centre)
        if all(np.linalg.norm(point - other) > reach for other in kept):
            kept.append(point)
    return kept


_DF = 3.0
# Widths of the draws relative to those of the places, with the shares of the draws.
_WIDTHS = ((1.0, 0.6), (2.0, 0.15), (5.0, 0.15), (20.0, 0.1))
# Nats above the known density from which on a point is a suspect.
_SUSPICIOUS = 3.0
# Least distance between two suspects, in units of the first place.
_APART = 0.3
# A place reaches as far as this share of its own t density.
_REACH = 0.9999
# Least number of effective draws beyond the reach of all places.
_FEWEST = 10


class Scan(eqx.Module):
    """What draws around known places have found.

    Attributes:
        suspects: Points whose density is far above what is known, the highest first.
        missing: Estimated share of the mass that lies at such points.
        missing_variance: The same of the variance, of the parameter with the most.
        uncovered: Share of the mass that lies beyond the reach of all places, where
            enough points there have been drawn.
        mean: Weighted mean of them.
        covariance: Weighted covariance of them; None if they are too few.
        whole: Moments of the posterior by all draws; None if the density is zero at
            all of them.
    """

    suspects: Float[np.ndarray, "m d"]
    missing: float
    missing_variance: float
    uncovered: float
    mean: Float[np.ndarray, " d"] | None
    covariance: Float[np.ndarray, "d d"] | None
    whole: BroadMoments | None


def scan_draws(
    rng: np.random.Generator, log_density: LogDensity, fitted: Fitted, n: int, keep: int
) -> Scan:
    """Compare the density with what is known of it at many points.

    Args:
        rng: Random generator.
        log_density: The log density.
        fitted: What is known.
        n: Number of points.
        keep: Number of suspects to return.
    """
    known = fitted.proposal
    proposal = TMixture(
        np.concatenate([known.log_weights + np.log(share) for _, share in _WIDTHS]),
        np.concatenate([known.means] * len(_WIDTHS)),
        np.concatenate([width * known.factors for width, _ in _WIDTHS]),
        _DF,
    )
    draws, _ = proposal.draw(rng, n)
    log_p = np.asarray(log_density(draws), np.float64)
    log_p = np.where(np.isfinite(log_p), log_p, -np.inf)
    dim = draws.shape[1]
    if not np.any(np.isfinite(log_p)):
        return Scan(np.empty((0, dim)), 0.0, 0.0, 0.0, None, None, None)
    squares = known.squares(draws)
    score = log_p - fitted.log_evidence - log_sum(known.log_parts(squares))
    wide = TMixture(known.log_weights, known.means, known.factors, _DF)
    log_q = log_sum(
        np.concatenate(
            [wide.log_parts(squares, w) + math.log(share) for w, share in _WIDTHS],
            axis=1,
        )
    )
    ratios = log_p - log_q
    weights = np.exp(ratios - np.max(ratios))
    is_suspect = score > _SUSPICIOUS
    own = np.where(is_suspect, weights, 0.0)
    total = np.sum(own)
    whole = BroadMoments.of(draws, weights)
    if not total > 0:
        return Scan(np.empty((0, dim)), 0.0, 0.0, 0.0, None, None, whole)
    order = np.argsort(-score, kind="stable")[: np.sum(is_suspect)]
    picked = rng.choice(len(draws), size=keep, p=own / total)
    order = np.stack([order[: len(picked)], picked[: len(order)]], axis=1).ravel()
    suspects = _spread_out(draws[order], known, keep)
    mean, covariance = weighted_moments(draws, own)
    enough = _effective(own) > draws.shape[1] + 2
    squared = (draws - weights @ draws / np.sum(weights)) ** 2
    is_beyond = np.min(squares, axis=1) > dim * scipy.special.fdtri(
        dim, known.df, _REACH
    )
    beyond = np.where(is_beyond, own, 0.0)
    is_measured = _effective(beyond) > _FEWEST
    return Scan(
        suspects,
        float(total / np.sum(weights)),
        float(np.max((own @ squared) / (weights @ squared))) if enough else 0.0,
        float(np.sum(beyond) / np.sum(weights)) if is_measured else 0.0,
        mean if enough else None,
        covariance if enough else None,
        whole,
    )


def _effective(weights: np.ndarray) -> float:
    """Effective number of weighted draws."""
    return float(np.sum(weights) ** 2 / (np.sum(weights**2) + np.finfo(float).tiny))


def _spread_out(points: np.ndarray, known: TMixture, keep: int) -> np.ndarray:
    """The first of the points, none of them near another."""
    inverse = np.linalg.inv(known.factors[0])
    kept: list[np.ndarray] = []
    for point in points:
        steps = [np.linalg.norm(inverse @ (point - other)) for other in kept]
        if min(steps, default=np.inf) > _APART:
            kept.append(point)
        if len(kept) == keep:
            break
    return np.stack(kept)


def smallest_feature(n: int, dim: int) -> float | None:
    """Width of the narrowest place with half the mass that draws would detect.

    The place lies somewhere in a normal that holds the other half; its width is given
    as a share of that normal's. It is detected where its density exceeds the normal's
    enough. With three draws expected there, at least one comes with 95 % probability.

    Args:
        n: Number of draws.
        dim: Number of parameters.

    Example:
        >>> smallest_feature(20_000, 2) < 0.02 < smallest_feature(20_000, 5) < 0.2
        True
    """
    draws = n * _WIDTHS[0][1]
    found = None
    for ratio in np.geomspace(0.7, 1e-4, 80):
        reach = 2 * (dim * math.log(1 / ratio) - _SUSPICIOUS - math.log(2.0))
        if reach <= 0:
            continue
        log_volume = 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim + 1)
        log_volume += dim * (math.log(ratio) + 0.5 * math.log(reach))
        # The mean density of a normal under itself.
        log_hit = log_volume - 0.5 * dim * math.log(4 * math.pi)
        if draws * math.exp(min(log_hit, 0.0)) >= 3.0:
            found = float(ratio)
    return found
