"""A look around known places for what the Newton paths have missed."""

import math

import equinox as eqx
import numpy as np
import scipy.special
from jaxtyping import Float

from softcvi.diagnostics import BroadMoments
from softcvi.starts._importance import Fitted, LogDensity, weighted_moments
from softcvi.starts._proposal import TMixture, log_sum

_DF = 3.0
# Widths of the look, in those of the places, with shares of the draws.
_WIDTHS = ((1.0, 0.6), (2.0, 0.15), (5.0, 0.15), (20.0, 0.1))
# A log density that exceeds what is known by more starts another path.
_SUSPICIOUS = 3.0
# Distance between points that are worth a path each, in units of the places.
_APART = 0.3
# Share of a place's own t within its reach.
_REACH = 0.9999
# Effective draws beyond the reach of all places that are enough to weigh them.
_FEWEST = 10


class Look(eqx.Module):
    """What a look around known places has found.

    Attributes:
        suspects: Points whose density is far above what is known, the highest first.
        missing: Estimated share of the mass that lies at such points.
        missing_variance: The same of the variance, of the parameter with the most.
        uncovered: Share of the mass that lies beyond the reach of all places, where
            enough points there have been drawn.
        mean: Weighted mean of them.
        covariance: Weighted covariance of them; None if they are too few.
        whole: Moments of the posterior by all draws of the look; None if the density
            is zero at all of them.
    """

    suspects: Float[np.ndarray, "m d"]
    missing: float
    missing_variance: float
    uncovered: float
    mean: Float[np.ndarray, " d"] | None
    covariance: Float[np.ndarray, "d d"] | None
    whole: BroadMoments | None


def look_around(
    rng: np.random.Generator, log_density: LogDensity, fitted: Fitted, n: int, keep: int
) -> Look:
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
        return Look(np.empty((0, dim)), 0.0, 0.0, 0.0, None, None, None)
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
        return Look(np.empty((0, dim)), 0.0, 0.0, 0.0, None, None, whole)
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
    return Look(
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
    """Width of the narrowest place with half the mass that a look would notice.

    The place lies somewhere in a normal that holds the other half; its width is given
    as a share of that normal's. It is noticed where its density exceeds the normal's
    enough; three draws expected there are one with a probability of 95 %.

    Args:
        n: Number of draws of the look.
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
