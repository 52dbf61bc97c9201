"""Time series: autoregressions as regressions, hidden levels as normals."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._linear import scale_mixture
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import normal_grid


def _walk(theta, data):
    level = theta["level"]
    steps = jnp.diff(level) / data["step_sd"]
    residual = (data["y"] - level) / data["sd"]
    first = (level[0] - data["first"]) / data["first_sd"]
    return -0.5 * (jnp.sum(steps**2) + jnp.sum(residual**2) + first**2)


def _level(theta, data):
    level, log_step = theta["level"], theta["log_step"]
    steps = jnp.diff(level) * jnp.exp(-log_step)
    residual = (data["y"] - level) / data["sd"]
    first = (level[0] - data["first"]) / data["first_sd"]
    hyper = log_step - data["log_step_mean"]
    total = jnp.sum(steps**2) + jnp.sum(residual**2) + first**2 + hyper**2
    return -0.5 * total - steps.size * log_step


def _autoregression(rng, order: int, length: int) -> RandomPosterior:
    unit = 10 ** rng.uniform(-2, 3)
    # Roots inside the unit circle, some close to it.
    roots = rng.uniform(-0.95, 0.95, order)
    phi = -np.poly(roots)[1:]
    middle = unit * rng.normal(0, 20)
    y = np.zeros(length + 100 + order)
    for t in range(order, y.size):
        y[t] = phi @ y[t - order : t][::-1] + unit * rng.normal()
    y = middle + y[-(length + order) :]
    lags = [y[order - k - 1 : -k - 1] for k in range(order)]
    x = np.column_stack([np.ones(length), *lags])
    return scale_mixture(
        {
            "x": x,
            "y": y[order:],
            "noise": unit,
            "prior_mean": np.zeros(order + 1),
            "prior_sd": np.append(50 * unit, np.ones(order)),
        }
    )


def autoregression(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """First-order autoregression of 30 or 200 points in raw units."""
    return _autoregression(rng, 1, (30, 200)[seed % 2])


def autoregression_longer(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Autoregressions of order two and four."""
    return _autoregression(rng, *((2, 50), (4, 150))[seed % 2])


def _simulated(rng, length: int) -> dict:
    unit = 10 ** rng.uniform(-1, 2)
    step_sd = unit * 10 ** rng.uniform(-1, 0.3)
    level = unit * rng.normal(0, 10) + np.cumsum(step_sd * rng.normal(size=length))
    return {
        "y": level + unit * rng.normal(size=length),
        "sd": unit,
        "first": level[0],
        "first_sd": 5 * unit,
        "step_sd": step_sd,
    }


def _precision(data: dict, step_sd: float) -> tuple[np.ndarray, np.ndarray]:
    length = len(data["y"])
    steps = np.diff(np.eye(length), axis=0) / step_sd
    precision = steps.T @ steps + np.eye(length) / data["sd"] ** 2
    precision[0, 0] += 1 / data["first_sd"] ** 2
    shift = data["y"] / data["sd"] ** 2
    shift[0] += data["first"] / data["first_sd"] ** 2
    return precision, shift


def random_walk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A random walk seen with noise, both spreads known."""
    return known_walk(rng, (20, 60)[seed % 2])


def long_walk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A longer random walk seen with noise."""
    return known_walk(rng, (100, 150)[seed % 2])


def known_walk(rng: np.random.Generator, length: int) -> RandomPosterior:
    """A random walk seen with noise, both spreads known."""
    data = _simulated(rng, length)
    precision, shift = _precision(data, data["step_sd"])
    covariance = np.linalg.inv(precision)
    target = density(_walk, {"level": (length,)}, data)
    right = {"level": covariance @ shift}, {"level": np.diag(covariance)}
    return from_moments(target, *right, "closed form")


def local_level(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A random walk seen with noise, the size of its steps unknown."""
    length = (10, 25)[seed % 2]
    data = _simulated(rng, length)
    data["log_step_mean"] = np.log(data.pop("step_sd")) + rng.normal(0, 0.5)

    def log_marginal(log_step: float):
        precision, shift = _precision(data, np.exp(log_step))
        covariance = np.linalg.inv(precision)
        mean = covariance @ shift
        height = 0.5 * (shift @ mean - np.linalg.slogdet(precision)[1])
        height -= (length - 1) * log_step
        hyper = log_step - data["log_step_mean"]
        return height - 0.5 * hyper**2, mean, np.diag(covariance)

    middle = data["log_step_mean"]
    one, others = normal_grid(log_marginal, middle - 6, middle + 6)
    target = density(_level, {"level": (length,), "log_step": ()}, data)
    mean, variance = (
        {"level": values, "log_step": np.array(step)}
        for values, step in zip(others, one, strict=True)
    )
    return from_moments(target, mean, variance, "quadrature")
