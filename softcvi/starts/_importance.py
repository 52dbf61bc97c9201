"""Adaptive importance sampling: t densities are moved to the modes' own moments.

One density for each mode, in a mixture. Every draw is weighted by the whole mixture and
shared among its parts in proportion to their densities (Cappe et al., 2008), so that
modes which overlap share the mass between them and their evidences add up.
"""

import math
from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float

from softcvi.posterior import psis
from softcvi.starts._base import Moments

_ROUNDS = 8
_DF = 7.0
_JITTER = 1e-10
_GOOD_SHARE = 0.7
# Every part keeps some draws, however small it seems: its estimate may be wrong.
_EVEN_SHARE = 0.3
# Share of the mass below which a mode is dropped.
_NEGLIGIBLE = 1e-4

LogDensity = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, " n"]]


class TMixture(eqx.Module):
    """A mixture of multivariate t densities.

    Attributes:
        log_weights: Log weights, which sum to one.
        means: Centres.
        factors: Cholesky factors of the covariances of the normals that the t widen.
        df: Degrees of freedom.
    """

    log_weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k d"]
    factors: Float[np.ndarray, "k d d"]
    df: float = _DF

    def draw(
        self, rng: np.random.Generator, n: int
    ) -> tuple[Float[np.ndarray, "n d"], np.ndarray]:
        """Draws, and which part each is from; the numbers of draws are not random."""
        shares = np.cumsum(np.exp(self.log_weights))
        part = np.searchsorted(shares / shares[-1], (np.arange(n) + 0.5) / n)
        part = np.minimum(part, len(self.means) - 1)
        dim = self.means.shape[1]
        t = rng.normal(size=(n, dim))
        t = t / np.sqrt(rng.chisquare(self.df, size=(n, 1)) / self.df)
        draws = np.empty((n, dim))
        for k, factor in enumerate(self.factors):
            own = part == k
            draws[own] = self.means[k] + t[own] @ factor.T
        return draws, part

    def log_parts(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Weighted log density of every part."""
        dim, df = self.means.shape[1], self.df
        constant = math.lgamma((df + dim) / 2) - math.lgamma(df / 2)
        constant -= 0.5 * dim * math.log(df * math.pi)
        columns = []
        for weight, mean, factor in zip(
            self.log_weights, self.means, self.factors, strict=True
        ):
            z = np.linalg.solve(factor, (x - mean).T)
            log_det = np.sum(np.log(np.diagonal(factor)))
            tail = -0.5 * (df + dim) * np.log1p(np.sum(z**2, axis=0) / df)
            columns.append(weight + constant - log_det + tail)
        return np.stack(columns, axis=1)


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
        """Lower bound of the log evidence: of two proposals the better has more.

        A proposal that misses a part of the posterior underestimates the evidence,
        however even its weights are.
        """
        return self.log_evidence - 2 * self.log_evidence_error


def num_draws(dim: int) -> int:
    """Draws of a round in so many dimensions."""
    return int(np.clip(100 * dim, 1000, 4000))


def adapt(
    rng: np.random.Generator,
    log_density: LogDensity,
    starts: Sequence[tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]],
    logits: Float[np.ndarray, " k"] | None = None,
) -> Fitted:
    """Improve normals by rounds of weighted draws from t densities around them.

    Args:
        rng: Random generator.
        log_density: Compiled function from draws ``(n, d)`` to log densities.
        starts: Mean and covariance to begin with, for each mode.
        logits: Log weights to begin with; equal by default.
    """
    means = np.stack([np.asarray(mean, np.float64) for mean, _ in starts])
    covariances = np.stack([np.asarray(c, np.float64) for _, c in starts])
    count, dim = means.shape
    n = num_draws(dim) * min(count, 8)
    weights = np.full(count, 1 / count)
    if logits is not None:
        weights = _normalised(np.asarray(logits, np.float64))
    best = None
    for _ in range(_ROUNDS):
        mixed = (1 - _EVEN_SHARE) * weights + _EVEN_SHARE / count
        proposal = TMixture(
            np.log(mixed), means, np.stack([factor_of(c) for c in covariances])
        )
        draws, part = proposal.draw(rng, n)
        log_p = np.asarray(log_density(draws), np.float64)
        log_parts = proposal.log_parts(draws)
        top = np.max(log_parts, axis=1, keepdims=True)
        log_mix = top[:, 0] + np.log(np.sum(np.exp(log_parts - top), axis=1))
        shared = np.exp(log_parts - log_mix[:, None])
        ratios = np.where(np.isfinite(log_p), log_p - log_mix, -np.inf)
        if not np.any(np.isfinite(ratios)):
            break
        log_weights, _ = psis(ratios)
        ess_share = float(1 / np.sum(np.exp(2 * log_weights)) / n)
        error = float(np.sqrt((1 / ess_share - 1) / n))
        log_evidence = _log_mean(ratios)
        if best is None or log_evidence - 2 * error > best.score:
            found = [
                _moments(k, proposal, covariances, draws, part, ratios, shared)
                for k in range(count)
            ]
            best = Fitted(tuple(found), proposal, ess_share, log_evidence, error)
        if ess_share > _GOOD_SHARE:
            break
        tempered = _tempered(ratios, needed=min(0.5, 4.0 * (dim + 5) * count / n) * n)
        weights = _normalised(ratios) @ shared
        means, covariances = _moved(means, covariances, draws, tempered, shared)
    if best is None:
        none = tuple(Moments(m, c) for m, c in zip(means, covariances, strict=True))
        return Fitted(none, proposal, 0.0, -np.inf, np.inf)
    return best


def worth_keeping(fitted: Fitted) -> tuple[Moments, ...]:
    """Modes whose mass counts, even if its error is allowed for; most mass first."""
    threshold = fitted.log_evidence + np.log(_NEGLIGIBLE)
    mass = {
        i: m.log_evidence
        for i, m in enumerate(fitted.modes)
        if m.log_evidence is not None
        and m.log_evidence + 3 * (m.log_evidence_error or 0.0) > threshold
    }
    if not mass:
        return fitted.modes[:1]
    return tuple(fitted.modes[i] for i in sorted(mass, key=lambda i: -mass[i]))


def _moments(k, proposal, covariances, draws, part, ratios, shared) -> Moments:
    """Qualities of one part: of the moments it had when these draws were made."""
    own = part == k
    log_weights, khat = psis(ratios[own])
    n = np.sum(own)
    mass = np.exp(ratios - np.max(ratios)) * shared[:, k]
    mean = np.mean(mass)
    if not mean > 0:
        return Moments(proposal.means[k], covariances[k], log_evidence=-np.inf)
    return Moments(
        mean=proposal.means[k],
        covariance=covariances[k],
        khat=khat,
        ess_share=float(1 / np.sum(np.exp(2 * log_weights)) / n),
        log_evidence=float(np.log(mean) + np.max(ratios)),
        departure=_departure(draws, mass),
        log_evidence_error=float(np.std(mass) / np.sqrt(len(mass)) / mean),
    )


def _moved(means, covariances, draws, weights, shared):
    """Weighted moments of every part that has enough draws for them."""
    means, covariances = means.copy(), covariances.copy()
    for k in range(len(means)):
        own = weights * shared[:, k]
        total = np.sum(own)
        dim = means.shape[1]
        if not (total > 0 and total**2 / np.sum(own**2) > dim + 2):
            continue
        own = own / total
        mean = own @ draws
        centred = draws - mean
        covariance = (own[:, None] * centred).T @ centred
        if np.all(np.isfinite(covariance)) and _positive(covariance):
            means[k], covariances[k] = mean, covariance
    return means, covariances


def _departure(draws: np.ndarray, weights: np.ndarray) -> float:
    weights = weights / np.sum(weights)
    centred = draws - weights @ draws
    with np.errstate(divide="ignore", invalid="ignore"):  # all weight on one draw
        z = centred / np.sqrt(weights @ centred**2)
    skewness, excess = weights @ z**3, weights @ z**4 - 3.0
    return float(max(np.max(np.abs(skewness)), 0.5 * np.max(excess)))


def factor_of(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Cholesky factor, with what it takes added to the diagonal."""
    diagonal = np.diag(np.diagonal(covariance))
    for jitter in (_JITTER, 1e-8, 1e-6, 1e-4):
        try:
            return np.linalg.cholesky(covariance + jitter * diagonal)
        except np.linalg.LinAlgError:
            continue
    return np.sqrt(np.abs(diagonal) + np.finfo(float).tiny)


def _tempered(ratios: np.ndarray, needed: float) -> np.ndarray:
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


def _log_mean(ratios: np.ndarray) -> float:
    top = np.max(ratios)
    return float(top + np.log(np.mean(np.exp(ratios - top))))


def _positive(covariance: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return False
    return True
