"""Adaptive importance sampling: t densities are moved to the modes' own moments.

One density for each mode, in a mixture. Every draw is weighted by the whole mixture and
shared among its parts in proportion to their densities (Cappe et al., 2008), so that
modes which overlap share the mass between them and their evidences add up.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from softcvi.posterior import psis
from softcvi.starts._base import Moments
from softcvi.starts._proposal import TMixture, factor_of, log_sum, share_on_normal

_ROUNDS = 8
# Rounds end at this share of effective draws, or at this part of the share that a
# normal posterior of the same dimension reaches.
_GOOD_SHARE = (0.7, 0.9)
# Rounds end when both evidence and effective share change by less than this.
_SETTLED = 0.03
# Every component keeps some draws: the estimate of its mass may be wrong.
_EVEN_SHARE = 0.3
# Below this part of the share of effective draws on a normal posterior, weighted draws
# have better moments than the proposal, if there are so many for each parameter.
_FAR_OFF = 0.5
_PER_PARAMETER = 10
# Share of the mass below which a mode is dropped.
_NEGLIGIBLE = 1e-4

LogDensity = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, " n"]]


class Fitted(eqx.Module):
    """What adaptive importance sampling found.

    Attributes:
        modes: Moments of each part, in the order given.
        proposal: The mixture that the qualities were measured with.
        ess_share: Share of effective draws of the mixture.
        log_evidence: Log mass of the whole.
    """

    modes: tuple[Moments, ...]
    proposal: TMixture
    ess_share: float
    log_evidence: float
    log_evidence_error: float

    @property
    def score(self) -> float:
        """Lower bound of the log evidence; higher for the better of two proposals.

        A proposal that misses a part of the posterior underestimates the evidence,
        however even its weights are.
        """
        return self.log_evidence - 2 * self.log_evidence_error


def num_draws(dim: int) -> int:
    """Number of draws per round."""
    return int(np.clip(100 * dim, 1000, 4000))


def adapt(
    rng: np.random.Generator,
    log_density: LogDensity,
    starts: Sequence[tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]],
    logits: Float[np.ndarray, " k"] | None = None,
    *,
    draws: int | None = None,
) -> Fitted:
    """Improve normals by rounds of weighted draws from t densities around them.

    Args:
        rng: Random generator.
        log_density: Compiled function from draws ``(n, d)`` to log densities.
        starts: Mean and covariance to begin with, for each mode.
        logits: Log weights to begin with; equal by default.
        draws: Draws of a round for each mode; by default what suits a cheap density.
    """
    means = np.stack([np.asarray(mean, np.float64) for mean, _ in starts])
    covariances = np.stack([np.asarray(c, np.float64) for _, c in starts])
    count, dim = means.shape
    n = (num_draws(dim) if draws is None else draws) * min(count, 8)
    weights = np.full(count, 1 / count)
    if logits is not None:
        weights = _normalised(np.asarray(logits, np.float64))
    best = last = None
    good_share = min(_GOOD_SHARE[0], _GOOD_SHARE[1] * share_on_normal(dim))
    for _ in range(_ROUNDS):
        mixed = (1 - _EVEN_SHARE) * weights + _EVEN_SHARE / count
        proposal = TMixture(
            np.log(mixed), means, np.stack([factor_of(c) for c in covariances])
        )
        points, part = proposal.draw(rng, n)
        log_p = np.asarray(log_density(points), np.float64)
        log_parts = proposal.log_parts(proposal.squares(points))
        log_mix = log_sum(log_parts)
        shared = np.exp(log_parts - log_mix[:, None])
        ratios = np.where(np.isfinite(log_p), log_p - log_mix, -np.inf)
        if not np.any(np.isfinite(ratios)):
            break
        log_weights, _ = psis(ratios)
        ess_share = float(1 / np.sum(np.exp(2 * log_weights)) / n)
        error = float(np.sqrt((1 / ess_share - 1) / n))
        log_evidence = _log_mean(ratios, log_weights)
        if best is None or log_evidence - 2 * error > best.score:
            found = [
                _moments(k, proposal, covariances, points, part, log_weights, shared)
                for k in range(count)
            ]
            found = [_with_mass(mode, log_evidence) for mode in found]
            best = Fitted(tuple(found), proposal, ess_share, log_evidence, error)
        if ess_share > good_share or (
            last is not None
            and abs(ess_share - last[0]) < _SETTLED * ess_share
            and abs(log_evidence - last[1]) < _SETTLED
        ):
            break
        last = ess_share, log_evidence
        tempered = tempered_weights(
            ratios, needed=min(0.5, 4.0 * (dim + 5) * count / n) * n
        )
        weights = _normalised(ratios) @ shared
        fits = _has_even_draws(count, part, ratios, good_share)
        means, covariances = _updated_moments(
            means, covariances, points, tempered, shared * ~fits
        )
    if best is None:
        none = tuple(Moments(m, c) for m, c in zip(means, covariances, strict=True))
        return Fitted(none, proposal, 0.0, -np.inf, np.inf)
    return best


def worth_keeping(fitted: Fitted) -> tuple[Moments, ...]:
    """Modes whose mass may matter, given its error; the largest first.

    What is narrower than the rounding of its parameters is left out: all its draws are
    one point, where the log density is a rounding error.
    """
    modes = [mode for mode in fitted.modes if _has_width(mode)]
    threshold = fitted.log_evidence + np.log(_NEGLIGIBLE)
    mass = {
        i: m.log_evidence
        for i, m in enumerate(modes)
        if m.log_evidence is not None
        and m.log_evidence + 3 * (m.log_evidence_error or 0.0) > threshold
    }
    if not mass:
        return tuple(map(_invertible, modes[:1]))
    order = sorted(mass, key=lambda i: -mass[i])
    return tuple(_invertible(modes[i]) for i in order)


def _has_width(mode: Moments) -> bool:
    rounding = np.finfo(float).eps * np.abs(mode.mean)
    return bool(np.all(mode.deviations > rounding))


def _invertible(mode: Moments) -> Moments:
    """The same mode, with a covariance that rounding has not made singular."""
    if mode.covariance is None or _is_positive_definite(mode.covariance):
        return mode
    factor = factor_of(mode.covariance)
    return eqx.tree_at(lambda m: m.covariance, mode, factor @ factor.T)


def _moments(k, proposal, covariances, draws, part, log_weights, shared) -> Moments:
    """Qualities of one part: of the moments it had when these draws were made.

    Its log evidence is that of its share of the whole. Smoothed weights make it, as one
    large weight must not decide which mode has the most mass.
    """
    own = part == k
    own_weights, khat = psis(log_weights[own])
    n, dim = np.sum(own), draws.shape[1]
    mass = np.exp(log_weights) * shared[:, k]
    total = np.sum(mass)
    mean, covariance = proposal.means[k], covariances[k]
    if not total > 0:
        return Moments(mean, covariance)
    ess_share = float(1 / np.sum(np.exp(2 * own_weights)) / n)
    # Weighted draws give better moments than a proposal that is far off.
    is_far_off = ess_share < _FAR_OFF * share_on_normal(dim)
    if is_far_off and total**2 / np.sum(mass**2) > _PER_PARAMETER * dim:
        mean, weighted = weighted_moments(draws, mass)
        covariance = weighted if _is_positive_definite(weighted) else covariance
    return Moments(
        mean=mean,
        covariance=covariance,
        khat=khat,
        ess_share=ess_share,
        log_evidence=float(np.log(total)),
        departure=_departure_from_normal(draws, mass),
        log_evidence_error=float(np.std(mass) * np.sqrt(len(mass)) / total),
    )


def _with_mass(mode: Moments, log_evidence: float) -> Moments:
    if mode.log_evidence is None:
        return mode
    share = mode.log_evidence
    return eqx.tree_at(lambda m: m.log_evidence, mode, share + log_evidence)


def _has_even_draws(count, part, ratios, good_share) -> Bool[np.ndarray, " k"]:
    """Whether a part's own draws have even weights, so that only its mass is open.

    Moments of weighted draws would only add their error, which grows with the
    dimension, to a part that fits.
    """
    even = np.zeros(count, bool)
    for k in range(count):
        own = ratios[part == k]
        if np.any(np.isfinite(own)):
            log_weights, _ = psis(own)
            even[k] = 1 / np.sum(np.exp(2 * log_weights)) > good_share * len(own)
    return even


def _updated_moments(means, covariances, draws, weights, shared):
    """Weighted moments of every part that has enough draws for them."""
    means, covariances = means.copy(), covariances.copy()
    for k in range(len(means)):
        own = weights * shared[:, k]
        total = np.sum(own)
        dim = means.shape[1]
        if not (total > 0 and total**2 / np.sum(own**2) > dim + 2):
            continue
        mean, covariance = weighted_moments(draws, own)
        if np.all(np.isfinite(covariance)) and _is_positive_definite(covariance):
            means[k], covariances[k] = mean, covariance
    return means, covariances


def weighted_moments(
    draws: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Mean and covariance of weighted draws; weights need not sum to one."""
    draws, weights = _with_weight(draws, weights)
    mean = weights @ draws
    centred = draws - mean
    return mean, (weights[:, None] * centred).T @ centred


def _with_weight(draws: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Draws whose weights are not negligible, with weights that sum to one.

    Of many separate parts each has but a few of the draws.
    """
    counts = weights > 1e-12 * np.max(weights)
    return draws[counts], weights[counts] / np.sum(weights[counts])


def _departure_from_normal(draws: np.ndarray, weights: np.ndarray) -> float:
    draws, weights = _with_weight(draws, weights)
    centred = draws - weights @ draws
    deviations = np.sqrt(weights @ centred**2)
    if not np.all(deviations > 0):  # all weight on one draw
        return np.inf
    z = centred / deviations
    squares = z * z  # powers would take ten times as long
    skewness, excess = weights @ (squares * z), weights @ (squares * squares) - 3.0
    return float(max(np.max(np.abs(skewness)), 0.5 * np.max(excess)))


def tempered_weights(ratios: np.ndarray, needed: float) -> np.ndarray:
    """Weights to the largest power up to one that leaves enough effective draws."""
    weights = _normalised(ratios)
    if 1 / np.sum(weights**2) >= needed:
        return weights
    low, high = 1e-8, 1.0
    for _ in range(40):
        power = np.sqrt(low * high)
        weights = _normalised(power * ratios)
        low, high = (power, high) if 1 / np.sum(weights**2) >= needed else (low, power)
    return _normalised(low * ratios)


def _normalised(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - np.max(logits))
    return weights / np.sum(weights)


def _log_mean(ratios: np.ndarray, log_weights: np.ndarray) -> float:
    """Log of the mean weight after smoothing: one large weight must not decide it.

    Args:
        ratios: Log weights.
        log_weights: The same, smoothed, which sum to one.
    """
    # Smoothing changes the largest weights only; the others give the normaliser.
    finite = np.flatnonzero(np.isfinite(ratios))
    low = finite[np.argsort(ratios[finite])[len(finite) // 4]]
    return float(ratios[low] - log_weights[low] - np.log(len(ratios)))


def _is_positive_definite(covariance: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return False
    return True
