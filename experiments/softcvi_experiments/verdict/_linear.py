"""Normal linear models in raw units: closed forms, and one scale by quadrature."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import normal_grid


def _known_noise(theta, data):
    residual = (data["y"] - data["x"] @ theta["beta"]) / data["noise"]
    prior = (theta["beta"] - data["prior_mean"]) / data["prior_sd"]
    return -0.5 * (jnp.sum(residual**2) + jnp.sum(prior**2))


def _unknown_noise(theta, data):
    log_noise = theta["log_noise"]
    residual = (data["y"] - data["x"] @ theta["beta"]) * jnp.exp(-log_noise)
    prior = (theta["beta"] - data["prior_mean"]) / data["prior_sd"]
    hyper = (log_noise - data["log_noise_mean"]) / 1.5
    total = jnp.sum(residual**2) + jnp.sum(prior**2) + hyper**2
    return -0.5 * total - data["y"].shape[0] * log_noise


def _raw_regression(rng, rows: int, size: int, prior_width: float = 100.0) -> dict:
    """Data in raw units: predictors of scales 1e-3 to 1e4, away from zero."""
    scale = 10 ** rng.uniform(-3, 4, size - 1)
    unit = 10 ** rng.uniform(-2, 3)
    z = rng.normal(size=(rows, size - 1)) + rng.uniform(-3, 3, size - 1)
    x = np.column_stack([np.ones(rows), scale * z])
    beta = unit * np.append(rng.normal(0, 20), rng.normal(0, 2, size - 1) / scale)
    noise = unit * 10 ** rng.uniform(-1, 0.5)
    return {
        "x": x,
        "y": x @ beta + noise * rng.normal(size=rows),
        "noise": noise,
        "prior_mean": np.zeros(size),
        "prior_sd": prior_width * unit * np.append(1.0, 1 / scale),
    }


def _closed_form(data: dict) -> RandomPosterior:
    mean, covariance = _coefficients(data, data["noise"])
    target = density(_known_noise, {"beta": mean.shape}, data)
    right = {"beta": mean}, {"beta": np.diag(covariance)}
    return from_moments(target, *right, "closed form")


def _coefficients(data: dict, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the coefficients, in units of the prior."""
    x = data["x"] * data["prior_sd"]
    precision = np.eye(x.shape[1]) + x.T @ x / noise**2
    covariance = np.linalg.inv(precision)
    residual = data["y"] - data["x"] @ data["prior_mean"]
    mean = covariance @ (x.T @ residual) / noise**2
    outer = np.outer(data["prior_sd"], data["prior_sd"])
    return data["prior_mean"] + data["prior_sd"] * mean, covariance * outer


def raw_units(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression with known noise, predictors in raw units."""
    size = (2, 4, 8)[seed % 3]
    return _closed_form(_raw_regression(rng, 60, size))


def more_columns_than_rows(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Fewer rows than coefficients: the prior decides on some directions."""
    size = (6, 12)[seed % 2]
    return _closed_form(_raw_regression(rng, 4, size, prior_width=10.0))


def many_rows(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Twenty thousand rows, whose sums strain single precision."""
    data = _raw_regression(rng, 20_000, 3)
    return _closed_form(data)


def collinear_mildly(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two nearly equal columns: condition numbers 1e2 to 1e4."""
    return _collinear(rng, (3, 5)[seed % 2], rng.uniform(2, 4))


def collinear(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two nearly equal columns: condition numbers 1e4 to 1e8."""
    return _collinear(rng, (3, 6)[seed % 2], rng.uniform(4, 8))


def _collinear(rng, size: int, log_condition: float) -> RandomPosterior:
    x = rng.normal(size=(80, size))
    x[:, -1] = x[:, -2] + 10 ** (-log_condition / 2) * rng.normal(size=80)
    beta = rng.normal(0, 2, size)
    noise = 10 ** rng.uniform(-1, 0.5)
    return _closed_form(
        {
            "x": x,
            "y": x @ beta + noise * rng.normal(size=80),
            "noise": noise,
            "prior_mean": np.zeros(size),
            "prior_sd": np.full(size, 1000.0),
        }
    )


def unknown_noise(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression in raw units whose noise is a parameter, with few rows or more."""
    rows, size = ((8, 3), (30, 5), (200, 9))[seed % 3]
    return scale_mixture(_raw_regression(rng, rows, size))


def scale_mixture(data: dict) -> RandomPosterior:
    """A linear model with unknown noise, integrated over the log noise."""
    data = {**data, "log_noise_mean": np.log(data["noise"]) + 0.5}
    del data["noise"]
    rows = len(data["y"])
    x = data["x"] * data["prior_sd"]
    residual = data["y"] - data["x"] @ data["prior_mean"]

    def log_marginal(log_noise: float):
        mean, covariance = _coefficients(data, np.exp(log_noise))
        precision = np.exp(-2 * log_noise)
        a = np.eye(x.shape[1]) + precision * x.T @ x
        b = precision * x.T @ residual
        quadratic = precision * residual @ residual - b @ np.linalg.solve(a, b)
        height = -0.5 * (quadratic + np.linalg.slogdet(a)[1]) - rows * log_noise
        hyper = (log_noise - data["log_noise_mean"]) / 1.5
        return height - 0.5 * hyper**2, mean, np.diag(covariance)

    middle = data["log_noise_mean"]
    one, others = normal_grid(log_marginal, middle - 8, middle + 8)
    shapes = {"beta": others[0].shape, "log_noise": ()}
    target = density(_unknown_noise, shapes, data)
    mean = {"beta": others[0], "log_noise": np.array(one[0])}
    variance = {"beta": others[1], "log_noise": np.array(one[1])}
    return from_moments(target, mean, variance, "quadrature")
