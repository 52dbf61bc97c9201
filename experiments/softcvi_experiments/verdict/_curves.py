"""Curves and mixtures with two parameters: answers on a grid."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import grid_moments


def _decay(x, data, xp=jnp):
    curve = xp.exp(x[..., :1] - xp.exp(x[..., 1:]) * data["t"])
    return _with_prior(x, curve, data)


def _saturation(x, data, xp=jnp):
    curve = xp.exp(x[..., :1]) * data["t"] / (xp.exp(x[..., 1:]) + data["t"])
    return _with_prior(x, curve, data)


def _frequency(x, data, xp=jnp):
    curve = x[..., :1] * xp.sin(x[..., 1:] * data["t"])
    return _with_prior(x, curve, data)


def _with_prior(x, curve, data):
    residual = ((data["y"] - curve) / data["noise"]) ** 2
    prior = ((x - data["prior_mean"]) / data["prior_sd"]) ** 2
    return -0.5 * (residual.sum(axis=-1) + prior.sum(axis=-1))


def _two_means(x, data, xp=jnp):
    share = data["share"]
    first = xp.log(share) - 0.5 * (data["y"] - x[..., :1]) ** 2
    second = xp.log1p(-share) - 0.5 * (data["y"] - x[..., 1:]) ** 2
    return xp.logaddexp(first, second).sum(axis=-1) - 0.005 * (x**2).sum(axis=-1)


def _decay_density(theta, data):
    return _decay(theta["x"], data)


def _saturation_density(theta, data):
    return _saturation(theta["x"], data)


def _frequency_density(theta, data):
    return _frequency(theta["x"], data)


def _two_means_density(theta, data):
    return _two_means(theta["x"], data)


def _answer(function, log_prob, data: dict, low, high) -> RandomPosterior:
    moments = grid_moments(
        lambda x: np.concatenate(
            [function(part, data, np) for part in np.array_split(x, 20)]
        ),
        low,
        high,
    )
    target = density(log_prob, {"x": (2,)}, data)
    return from_moments(target, {"x": moments[0]}, {"x": moments[1]}, "quadrature")


def _observed(rng, truth, curve, t, noise: float, prior_sd) -> dict:
    return {
        "t": t,
        "y": curve + noise * rng.normal(size=t.size),
        "noise": noise,
        "prior_mean": np.asarray(truth) + prior_sd * rng.normal(0, 0.5, 2),
        "prior_sd": np.asarray(prior_sd),
    }


def _wide(data: dict) -> tuple[np.ndarray, np.ndarray]:
    reach = 6 * data["prior_sd"]
    return data["prior_mean"] - reach, data["prior_mean"] + reach


def decay(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential decay, seen over a part of its half-life or many of them."""
    truth = rng.uniform(0, 3), rng.uniform(-3, 1)
    t = np.linspace(0, 4, (5, 25)[seed % 2])
    curve = np.exp(truth[0] - np.exp(truth[1]) * t)
    noise = np.exp(truth[0]) * rng.uniform(0.02, 0.2)
    data = _observed(rng, truth, curve, t, noise, np.ones(2))
    return _answer(_decay, _decay_density, data, *_wide(data))


def saturation(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A curve that saturates, often seen in its linear part only: a ridge."""
    truth = rng.uniform(0, 3), rng.uniform(-2, 2)
    t = np.linspace(0.1, 3, (6, 20)[seed % 2])
    curve = np.exp(truth[0]) * t / (np.exp(truth[1]) + t)
    noise = curve.max() * rng.uniform(0.02, 0.15)
    data = _observed(rng, truth, curve, t, noise, np.full(2, 1.5))
    return _answer(_saturation, _saturation_density, data, *_wide(data))


def frequency(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A sine of unknown frequency: several modes beside the right one."""
    truth = rng.uniform(0.5, 2), rng.uniform(1, 4)
    t = np.linspace(0, 6, (8, 20)[seed % 2])
    curve = truth[0] * np.sin(truth[1] * t)
    data = _observed(rng, truth, curve, t, rng.uniform(0.4, 1.2), np.array([1.0, 1.5]))
    return _answer(_frequency, _frequency_density, data, *_wide(data))


def two_means(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Means of a mixture of two normals: two modes of very different mass."""
    count = (15, 40)[seed % 2]
    share, gap = rng.uniform(0.55, 0.8), rng.uniform(1.5, 4)
    label = rng.uniform(size=count) < share
    y = np.where(label, 0.0, gap) + rng.normal(size=count)
    data = {"y": y, "share": share}
    low = np.full(2, y.min() - 30.0)
    high = np.full(2, y.max() + 30.0)
    return _answer(_two_means, _two_means_density, data, low, high)
