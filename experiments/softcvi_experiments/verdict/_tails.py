"""Heavy tails and skewness: closed forms and exact draws."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from scipy import special

from softcvi.targets import UnconstrainedSpace, positive
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000


def _student(theta, data):
    z = data["factor"].T @ (theta["x"] - data["mean"])
    df = data["df"]
    return -0.5 * (df + z.size) * jnp.log1p(jnp.sum(z**2) / df)


def _students(theta, data):
    z = (theta["x"] - data["mean"]) / data["unit"]
    return -jnp.sum(0.5 * (data["df"] + 1) * jnp.log1p(z**2 / data["df"]))


def _log_gamma(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    return jnp.sum(data["shape"] * x - jnp.exp(x))


def _skew_normal(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    return jnp.sum(-0.5 * z**2 + log_ndtr(data["slant"] * z))


def _log_normal(theta, data):
    log_x = jnp.log(theta["x"])
    z = (log_x - data["mean"]) / data["sd"]
    return -jnp.sum(0.5 * z**2 + log_x)


def _powers(theta, data):
    z = jnp.abs(theta["x"] - data["shift"]) / data["unit"]
    return -jnp.sum(z ** data["power"])


def student(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A multivariate t with 3 to 10 degrees of freedom and correlations."""
    size = (2, 5, 10)[seed % 3]
    root = rng.normal(size=(size, size)) / np.sqrt(size) + 0.3 * np.eye(size)
    unit = 10 ** rng.uniform(-2, 3, size)
    covariance = (unit[:, None] * root) @ (unit[:, None] * root).T
    df = rng.uniform(3, 10)
    mean = unit * rng.normal(0, 10, size)
    data = {
        "mean": mean,
        "factor": np.linalg.cholesky(np.linalg.inv(covariance)),
        "df": df,
    }
    normal = rng.normal(size=(_DRAWS, size)) @ np.linalg.cholesky(covariance).T
    stretch = np.sqrt(df / rng.chisquare(df, size=(_DRAWS, 1)))
    draws = {"x": mean + normal * stretch}
    return from_draws(density(_student, {"x": (size,)}, data), draws, Quantiles())


def students(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Independent t with 2 to 10 degrees of freedom, in raw units."""
    size = (1, 4, 10)[seed % 3]
    data = {
        "mean": rng.normal(0, 5, size),
        "unit": 10 ** rng.uniform(-3, 2, size),
        "df": 10 ** rng.uniform(np.log10(2), 1, size),
    }
    noise = rng.standard_t(data["df"], size=(_DRAWS, size))
    draws = {"x": data["mean"] + data["unit"] * noise}
    return from_draws(density(_students, {"x": (size,)}, data), draws, Quantiles())


def log_gamma(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logarithms of gamma variables with shapes 0.3 to 10."""
    size = (2, 6, 20)[seed % 3]
    shape = 10 ** rng.uniform(-0.5, 1, size)
    data = {
        "shape": shape,
        "shift": rng.normal(0, 5, size),
        "unit": 10 ** rng.uniform(-2, 2, size),
    }
    mean = data["shift"] + data["unit"] * special.digamma(shape)
    variance = data["unit"] ** 2 * special.polygamma(1, shape)
    target = density(_log_gamma, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def skew_normal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Independent skew-normal variables in raw units."""
    size = (2, 8, 20)[seed % 3]
    slant = rng.uniform(-8, 8, size)
    data = {
        "slant": slant,
        "shift": rng.normal(0, 5, size),
        "unit": 10 ** rng.uniform(-3, 3, size),
    }
    delta = slant / np.sqrt(1 + slant**2)
    mean = data["shift"] + data["unit"] * delta * np.sqrt(2 / np.pi)
    variance = data["unit"] ** 2 * (1 - 2 * delta**2 / np.pi)
    target = density(_skew_normal, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def log_normal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Positive parameters of very different sizes, fitted on the log scale."""
    size = (1, 4, 12)[seed % 3]
    data = {"mean": rng.uniform(-7, 9, size), "sd": rng.uniform(0.1, 1.0, size)}
    space = UnconstrainedSpace({"x": positive()})
    mean = np.exp(data["mean"] + data["sd"] ** 2 / 2)
    variance = mean**2 * np.expm1(data["sd"] ** 2)
    target = density(_log_normal, {"x": (size,)}, data, space)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def powers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential power variables: from Laplace's peak to a nearly flat top."""
    size = (2, 6)[seed % 2]
    power = rng.uniform(1, 6, size)
    data = {
        "power": power,
        "shift": rng.normal(0, 10, size),
        "unit": 10 ** rng.uniform(-2, 2, size),
    }
    ratio = special.gamma(3 / power) / special.gamma(1 / power)
    target = density(_powers, {"x": (size,)}, data)
    right = {"x": data["shift"]}, {"x": data["unit"] ** 2 * ratio}
    return from_moments(target, *right, "closed form")
