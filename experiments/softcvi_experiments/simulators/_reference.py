"""Means and standard deviations by importance sampling with very many evaluations."""

import numpy as np

from softcvi_experiments.simulators._models import Simulator

_ROUNDS, _FEW, _MANY = 6, 20_000, 200_000
_DEGREES = 7


def moments(
    simulator: Simulator, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, standard deviation and effective sample size.

    Student's t follows the weighted points for a few rounds, the first of them softened
    so that the narrow posterior is not lost, then makes the points that count.

    Args:
        simulator: The posterior.
        seed: Seed of the points.

    Example:
        >>> from softcvi_experiments.simulators import SIMULATORS, moments
        >>> mean, sd, ess = moments(SIMULATORS["drug"])
        >>> mean.shape, bool(ess > 20_000)
        ((4,), True)
    """
    rng = np.random.default_rng(seed)
    mean, factor = np.zeros(simulator.size), np.eye(simulator.size)
    for count in [_FEW] * _ROUNDS + [_MANY]:
        noise = rng.normal(size=(count, simulator.size))
        noise /= np.sqrt(rng.chisquare(_DEGREES, (count, 1)) / _DEGREES)
        points = mean + noise @ factor.T
        squares = np.sum(noise**2, axis=1)
        log_q = -0.5 * (_DEGREES + simulator.size) * np.log1p(squares / _DEGREES)
        with np.errstate(over="ignore", invalid="ignore"):
            values = simulator.log_density(points) - log_q
        values = np.where(np.isfinite(values), values, -np.inf)
        weights = _softened(values) if count == _FEW else _normalised(values)
        mean = weights @ points
        covariance = (points - mean).T @ ((points - mean) * weights[:, None])
        factor = 1.2 * np.linalg.cholesky(covariance + 1e-12 * np.eye(simulator.size))
    return mean, np.sqrt(np.diag(covariance)), 1 / np.sum(weights**2)


def _softened(log_weights: np.ndarray) -> np.ndarray:
    """Weights at the largest power that leaves a hundredth of the points in effect."""
    power = 1.0
    while True:
        weights = _normalised(power * log_weights)
        if 1 / np.sum(weights**2) > len(weights) / 100:
            return weights
        power *= 0.7


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()
