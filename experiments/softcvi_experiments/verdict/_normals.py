"""Normals in many dimensions: closed forms."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _normal(theta, data):
    z = data["factor"] @ (theta["x"] - data["mean"])
    return -0.5 * jnp.sum(z**2)


def _answer(mean: np.ndarray, factor: np.ndarray) -> RandomPosterior:
    """A normal with precision ``factor.T @ factor``."""
    inverse = np.linalg.inv(factor)
    target = density(_normal, {"x": mean.shape}, {"mean": mean, "factor": factor})
    right = {"x": mean}, {"x": (inverse**2).sum(axis=1)}
    return from_moments(target, *right, "closed form")


def conditioned(
    rng: np.random.Generator, size: int, log_condition: float
) -> RandomPosterior:
    """A normal whose condition number is at most that power of ten."""
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    precision_sd = 10 ** rng.uniform(-log_condition / 4, log_condition / 4, size)
    return _answer(rng.normal(0, 5, size), precision_sd[:, None] * rotation.T)


def hundred(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 60 or 120 parameters, condition numbers up to 1e4."""
    return conditioned(rng, (60, 120)[seed % 2], rng.uniform(0, 4))


def hundreds(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 150 or 300 parameters, condition numbers up to 1e4."""
    return conditioned(rng, (150, 300)[seed % 2], rng.uniform(0, 4))


def equicorrelated(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 50 or 100 parameters that are all correlated, in raw units."""
    size = (50, 100)[seed % 2]
    correlation = rng.uniform(0.3, 0.95)
    covariance = np.full((size, size), correlation)
    np.fill_diagonal(covariance, 1.0)
    unit = 10 ** rng.uniform(-2, 2, size)
    factor = np.linalg.inv(np.linalg.cholesky(covariance)) / unit
    return _answer(unit * rng.normal(0, 5, size), factor)
