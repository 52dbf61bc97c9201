"""Bounded supports, by minus infinity outside or by a bijection: closed forms."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from softcvi.targets import UnconstrainedSpace, interval, positive
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _truncated(theta, data):
    x = theta["x"]
    inside = jnp.all((x > data["low"]) & (x < data["high"]))
    z = (x - data["mean"]) / data["sd"]
    return jnp.where(inside, -0.5 * jnp.sum(z**2), -jnp.inf)


def _ball(theta, data):
    z = (theta["x"] - data["middle"]) / data["radius"]
    return jnp.where(jnp.sum(z**2) < 1, 0.0, -jnp.inf)


def _blocks(theta, data):
    x = theta["x"]
    inside = (x > data["low"]) & (x < data["high"])
    return jnp.where(jnp.any(jnp.all(inside, axis=-1)), 0.0, -jnp.inf)


def _exponential(theta, data):
    x = theta["x"]
    inside = jnp.all(x > data["low"])
    decay = jnp.sum((x - data["low"]) / data["scale"])
    return jnp.where(inside, -decay, -jnp.inf)


def _beta(theta, data):
    p = theta["p"]
    return jnp.sum((data["a"] - 1) * jnp.log(p) + (data["b"] - 1) * jnp.log1p(-p))


def _gamma(theta, data):
    x = theta["x"]
    return jnp.sum((data["shape"] - 1) * jnp.log(x) - x / data["scale"])


def truncated(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals cut off at a box that holds the origin: others cannot be found."""
    size = (1, 3, 6)[seed % 3]
    sd = 10 ** rng.uniform(-1, 1, size)
    width = sd * rng.uniform(1, 4, size)
    low = -width * rng.uniform(0.1, 0.9, size)
    mean = low + sd * rng.uniform(-0.5, 3, size)
    data = {"mean": mean, "sd": sd, "low": low, "high": low + width}
    edges = (data["low"] - mean) / sd, (data["high"] - mean) / sd
    exact = stats.truncnorm(*edges, loc=mean, scale=sd)
    target = density(_truncated, {"x": (size,)}, data)
    right = {"x": exact.mean()}, {"x": exact.var()}
    return from_moments(target, *right, "closed form")


def ball(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Uniform on a ball away from the origin."""
    size = (1, 2, 5)[seed % 3]
    radius = 10 ** rng.uniform(0, 1)
    middle = radius * rng.uniform(-0.9, 0.9, size) / np.sqrt(size)
    target = density(_ball, {"x": (size,)}, {"middle": middle, "radius": radius})
    variance = np.full(size, radius**2 / (size + 2))
    return from_moments(target, {"x": middle}, {"x": variance}, "closed form")


def blocks(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two flat boxes with no density between them."""
    size = (1, 2, 3)[seed % 3]
    sides = rng.uniform(1, 3, (2, size))
    low = np.stack([-sides[0] / 2, sides[0] / 2 + rng.uniform(1, 6, size)])
    weights = sides.prod(axis=1)
    weights /= weights.sum()
    middle = low + sides / 2
    mean = weights @ middle
    variance = weights @ (sides**2 / 12 + (middle - mean) ** 2)
    target = density(_blocks, {"x": (size,)}, {"low": low, "high": low + sides})
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def exponential(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponentials whose highest density is at the edge of the support."""
    size = (1, 3, 6)[seed % 3]
    scale = 10 ** rng.uniform(-0.5, 1.5, size)
    low = -scale * rng.uniform(0.0, 2.0, size)
    target = density(_exponential, {"x": (size,)}, {"low": low, "scale": scale})
    return from_moments(target, {"x": low + scale}, {"x": scale**2}, "closed form")


def proportions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Beta posteriors of proportions, fitted on the logit scale."""
    size = (1, 4, 15)[seed % 3]
    a, b = 10 ** rng.uniform(-0.3, 2.5, (2, size))
    exact = stats.beta(a, b)
    space = UnconstrainedSpace({"p": interval(0.0, 1.0)})
    target = density(_beta, {"p": (size,)}, {"a": a, "b": b}, space)
    right = {"p": exact.mean()}, {"p": exact.var()}
    return from_moments(target, *right, "closed form")


def rates(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Gamma posteriors of rates in raw units, fitted on the log scale."""
    size = (1, 4, 12)[seed % 3]
    shape, scale = 10 ** rng.uniform(-0.2, 2, size), 10 ** rng.uniform(-4, 4, size)
    space = UnconstrainedSpace({"x": positive()})
    data = {"shape": shape, "scale": scale}
    target = density(_gamma, {"x": (size,)}, data, space)
    right = {"x": shape * scale}, {"x": shape * scale**2}
    return from_moments(target, *right, "closed form")
