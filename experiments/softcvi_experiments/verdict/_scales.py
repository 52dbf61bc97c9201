"""Linear models with an unknown scale: all but its log is normal given it."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import normal_grid


def _shrunk(theta, data):
    x, log_scale = theta["x"], theta["log_scale"]
    residual = (data["y"] - data["design"] @ x) / data["noise"]
    inner = data["shrink"] @ x
    hyper = (log_scale - data["hyper_mean"]) / data["hyper_sd"]
    total = jnp.sum(residual**2) + jnp.sum(data["base"] * x**2) + hyper**2
    inner_total = jnp.sum(inner**2) * jnp.exp(-2 * log_scale)
    return -0.5 * (total + inner_total) - inner.size * log_scale


def _answer(data: dict) -> RandomPosterior:
    size, inner = data["design"].shape[1], data["shrink"]
    design = data["design"] / np.reshape(data["noise"], (-1, 1))
    fixed = design.T @ design + np.diag(np.broadcast_to(data["base"], size))
    shift = design.T @ (data["y"] / data["noise"])

    def log_marginal(log_scale: float):
        precision = fixed + inner.T @ inner * np.exp(-2 * log_scale)
        covariance = np.linalg.inv(precision)
        mean = covariance @ shift
        height = 0.5 * (shift @ mean - np.linalg.slogdet(precision)[1])
        hyper = (log_scale - data["hyper_mean"]) / data["hyper_sd"]
        height -= len(inner) * log_scale + 0.5 * hyper**2
        return height, mean, np.diag(covariance)

    middle, reach = data["hyper_mean"], 7 * data["hyper_sd"]
    one, others = normal_grid(log_marginal, middle - reach, middle + reach)
    mean, variance = (
        {"x": values, "log_scale": np.array(scale)}
        for values, scale in zip(others, one, strict=True)
    )
    target = density(_shrunk, {"x": (size,), "log_scale": ()}, data)
    return from_moments(target, mean, variance, "quadrature")


def _data(rng, design, shrink, y, noise, scale, base=0.0) -> dict:
    return {
        "design": design,
        "shrink": shrink,
        "y": y,
        "noise": noise,
        "base": base,
        "hyper_mean": np.log(scale) + rng.normal(0, 0.4),
        "hyper_sd": 0.7,
    }


def shrinkage(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression whose coefficients have a common unknown scale."""
    rows, size = ((20, 4), (60, 15), (50, 40))[seed % 3]
    scale, noise = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-0.5, 0.5)
    design = rng.normal(size=(rows, size))
    y = design @ (scale * rng.normal(size=size)) + noise * rng.normal(size=rows)
    return _answer(_data(rng, design, np.eye(size), y, noise, scale))


def random_slopes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Groups with slopes of their own around a common line, in raw units."""
    groups = (4, 10, 25)[seed % 3]
    rows = 6 * groups
    unit = 10 ** rng.uniform(-2, 2)
    scale, label = unit * 10 ** rng.uniform(-0.5, 0.5), np.arange(rows) % groups
    z = rng.normal(size=rows)
    own = np.eye(groups)[label] * z[:, None]
    design = np.column_stack([np.ones(rows), z, own])
    x = np.append(unit * rng.normal(0, 3, 2), scale * rng.normal(size=groups))
    y = design @ x + unit * rng.normal(size=rows)
    shrink = np.eye(groups + 2)[2:]
    base = np.append(np.full(2, 1 / (30 * unit) ** 2), np.zeros(groups))
    return _answer(_data(rng, design, shrink, y, unit, scale, base))


def smooth_curve(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A curve with unknown roughness, by its second differences."""
    size = (10, 25, 50)[seed % 3]
    noise = 10 ** rng.uniform(-1, 1)
    scale = noise * 10 ** rng.uniform(-1, 0.3)
    curve = np.cumsum(np.cumsum(scale * rng.normal(size=size))) + 5 * rng.normal()
    shrink = np.diff(np.eye(size), n=2, axis=0)
    y = curve + noise * rng.normal(size=size)
    base = 1 / (100 * noise) ** 2
    return _answer(_data(rng, np.eye(size), shrink, y, noise, scale, base))


def gaussian_process(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A Gaussian process with unknown amplitude, seen with uneven noise."""
    size = (8, 18, 35)[seed % 3]
    place = np.sort(rng.uniform(0, 10, size))
    distance = np.abs(place[:, None] - place) / rng.uniform(1, 3)
    kernel = (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)
    factor = np.linalg.cholesky(kernel + 1e-4 * np.eye(size))
    scale = 10 ** rng.uniform(-0.5, 1)
    noise = scale * rng.uniform(0.2, 1.5, size)
    y = scale * factor @ rng.normal(size=size) + noise * rng.normal(size=size)
    return _answer(_data(rng, np.eye(size), np.linalg.inv(factor), y, noise, scale))


def seasonal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A trend with monthly effects of unknown size."""
    months = 12
    years = (2, 4)[seed % 2]
    unit = 10 ** rng.uniform(-1, 2)
    time = np.arange(months * years)
    own = np.eye(months)[time % months]
    design = np.column_stack([np.ones(time.size), time / time.size, own])
    scale = unit * 10 ** rng.uniform(-0.5, 0.7)
    x = np.append(unit * rng.normal(0, 5, 2), scale * rng.normal(size=months))
    y = design @ x + unit * rng.normal(size=time.size)
    base = np.append(np.full(2, 1 / (20 * unit) ** 2), np.zeros(months))
    return _answer(_data(rng, design, np.eye(months + 2)[2:], y, unit, scale, base))
