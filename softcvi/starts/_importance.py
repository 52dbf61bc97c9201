"""Adaptive importance sampling: a normal is moved to the posterior's own moments."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Float

from softcvi.posterior import psis
from softcvi.starts._base import Moments

_ROUNDS = 8
_DF = 7.0
_JITTER = 1e-10


def num_draws(dim: int) -> int:
    """Draws of a round in so many dimensions."""
    return int(np.clip(100 * dim, 1000, 4000))


def adapt(
    rng: np.random.Generator,
    log_density: Callable[[Array], Array],
    mean: Float[np.ndarray, " d"],
    covariance: Float[np.ndarray, "d d"],
) -> Moments:
    """Improve a normal by rounds of weighted draws from a t with its moments.

    Args:
        rng: Random generator.
        log_density: Compiled function from draws ``(n, d)`` to log densities.
        mean: Where to begin.
        covariance: How wide to begin.
    """
    mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
    dim = mean.size
    n = num_draws(dim)
    best = None
    for _ in range(_ROUNDS):
        draws, log_q = _draw_t(rng, mean, covariance, n)
        log_p = np.asarray(log_density(draws), np.float64)
        ratios = np.where(np.isfinite(log_p), log_p - log_q, -np.inf)
        log_weights, khat = psis(ratios)
        ess_share = float(1 / np.sum(np.exp(2 * log_weights)) / n)
        evidence = _log_mean(ratios)
        if best is None or ess_share > (best.ess_share or 0.0):
            departure = _departure(draws, np.exp(log_weights))
            best = Moments(mean, covariance, khat, ess_share, evidence, departure)
        if not np.any(np.isfinite(ratios)):
            break
        weights = _tempered(ratios, needed=min(0.5, 4.0 * (dim + 5) / n) * n)
        new_mean = weights @ draws
        centred = draws - new_mean
        new_covariance = (weights[:, None] * centred).T @ centred
        if not (np.all(np.isfinite(new_covariance)) and _positive(new_covariance)):
            break
        mean, covariance = new_mean, new_covariance
        if ess_share > 0.7:
            break
    assert best is not None
    return best


def _departure(draws: np.ndarray, weights: np.ndarray) -> float:
    weights = weights / np.sum(weights)
    centred = draws - weights @ draws
    with np.errstate(divide="ignore", invalid="ignore"):  # all weight on one draw
        z = centred / np.sqrt(weights @ centred**2)
    skewness, excess = weights @ z**3, weights @ z**4 - 3.0
    return float(max(np.max(np.abs(skewness)), 0.5 * np.max(excess)))


def _draw_t(rng, mean, covariance, n):
    dim = mean.size
    chol = np.linalg.cholesky(covariance + _JITTER * np.diag(np.diagonal(covariance)))
    z = rng.normal(size=(n, dim))
    mixing = rng.chisquare(_DF, size=(n, 1)) / _DF
    t = z / np.sqrt(mixing)
    square = np.sum(t**2, axis=1)
    log_q = math.lgamma((_DF + dim) / 2) - math.lgamma(_DF / 2)
    log_q = log_q - 0.5 * dim * math.log(_DF * math.pi)
    log_q = log_q - np.sum(np.log(np.diagonal(chol)))
    log_q = log_q - 0.5 * (_DF + dim) * np.log1p(square / _DF)
    return mean + t @ chol.T, log_q


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
    if not np.isfinite(top):
        return -np.inf
    return float(top + np.log(np.mean(np.exp(ratios - top))))


def _positive(covariance: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return False
    return True
