"""Bent, ring-shaped and funnel-shaped posteriors: closed forms and exact draws."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    Moments,
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import grid_moments

_DRAWS = 200_000


def _banana(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    rest = (x[1] - data["bend"] * x[0] ** 2) / data["width"]
    return -0.5 * (x[0] ** 2 + rest**2 + jnp.sum(x[2:] ** 2))


def _ring(theta, data):
    radius = jnp.sqrt(jnp.sum(theta["x"][:2] ** 2))
    around = (radius - data["radius"]) / data["width"]
    return -0.5 * (around**2 + jnp.sum(theta["x"][2:] ** 2))


def _arc(x, data, xp=jnp):
    radius = xp.sqrt(x[..., 0] ** 2 + x[..., 1] ** 2)
    around = (radius - data["radius"]) / data["width"]
    return -0.5 * (around**2 + ((x[..., 0] - data["side"]) / data["reach"]) ** 2)


def _arc_density(theta, data):
    return _arc(theta["x"], data)


def _funnel(theta, data):
    v, x = theta["v"], theta["x"]
    spread = jnp.sum(x**2 * jnp.exp(-v)) + x.size * v
    return -0.5 * ((v / data["sd"]) ** 2 + spread)


def _funnels(theta, data):
    v, x = theta["v"], theta["x"]
    return -0.5 * jnp.sum((v / data["sd"]) ** 2 + x**2 * jnp.exp(-v) + v)


def _sinh(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    t = jnp.arcsinh(z) * data["tail"] - data["skew"]
    slope = jnp.log(jnp.cosh(t)) - 0.5 * jnp.log1p(z**2)
    return jnp.sum(slope - 0.5 * jnp.sinh(t) ** 2)


def banana(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A parabola with normal noise, in raw units."""
    return _bent(rng, 2, rng.uniform(0.2, 2.0), 10 ** rng.uniform(-0.7, 0))


def banana_sharp(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A thin parabola among other parameters, in raw units."""
    size = (2, 6, 10)[seed % 3]
    return _bent(rng, size, rng.uniform(1.0, 3.0), 10 ** rng.uniform(-1, -0.3))


def _bent(rng, size: int, bend: float, width: float) -> RandomPosterior:
    shift = rng.normal(0, 5, size)
    unit = 10 ** rng.uniform(-2, 2, size)
    data = {"shift": shift, "unit": unit, "bend": bend, "width": width}
    mean, variance = np.zeros(size), np.ones(size)
    mean[1], variance[1] = bend, 2 * bend**2 + width**2
    target = density(_banana, {"x": (size,)}, data)
    right = {"x": shift + unit * mean}, {"x": unit**2 * variance}
    return from_moments(target, *right, "closed form")


def ring(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A ring of radius 3 to 20, a tenth to a hundredth as wide."""
    size = (2, 4)[seed % 2]
    radius = rng.uniform(3, 20)
    data = {"radius": radius, "width": radius * 10 ** rng.uniform(-2, -1)}
    grid = np.linspace(
        max(0, radius - 9 * data["width"]), radius + 9 * data["width"], 4001
    )
    height = grid * np.exp(-0.5 * ((grid - radius) / data["width"]) ** 2)
    variance = np.ones(size)
    variance[:2] = (height @ grid**2) / height.sum() / 2
    target = density(_ring, {"x": (size,)}, data)
    return from_moments(target, {"x": np.zeros(size)}, {"x": variance}, "quadrature")


def arc(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Part of a ring."""
    radius = rng.uniform(2, 6)
    data = {
        "radius": radius,
        "width": radius * rng.uniform(0.05, 0.2),
        "side": radius * rng.uniform(0.5, 1.0),
        "reach": radius * rng.uniform(0.2, 1.0),
    }
    half = np.full(2, 1.8 * radius)
    moments = grid_moments(lambda x: _arc(x, data, np), -half, half)
    target = density(_arc_density, {"x": (2,)}, data)
    return from_moments(target, {"x": moments[0]}, {"x": moments[1]}, "quadrature")


def funnel(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Neal's funnel, the log variance with an sd of 1 to 3."""
    size = (2, 5, 9)[seed % 3]
    return neal(rng, size, rng.uniform(1, 3))


def neal(rng: np.random.Generator, size: int, sd: float) -> RandomPosterior:
    """Neal's funnel with so many parameters below the log variance."""
    v = sd * rng.normal(size=_DRAWS)
    x = np.exp(v / 2)[:, None] * rng.normal(size=(_DRAWS, size))
    target = density(_funnel, {"v": (), "x": (size,)}, {"sd": sd})
    return from_draws(target, {"v": v, "x": x}, Quantiles())


def funnels(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Several funnels of two parameters side by side."""
    count = (1, 3, 5)[seed % 3]
    sd = rng.uniform(0.8, 2.0, count)
    v = sd * rng.normal(size=(_DRAWS, count))
    x = np.exp(v / 2) * rng.normal(size=(_DRAWS, count))
    target = density(_funnels, {"v": (count,), "x": (count,)}, {"sd": sd})
    return from_draws(target, {"v": v, "x": x}, Quantiles())


def sinh_arcsinh(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Independent sinh-arcsinh variables: skewed, with lighter or heavier tails."""
    size = (2, 6, 15)[seed % 3]
    data = {
        "shift": rng.normal(0, 5, size),
        "unit": 10 ** rng.uniform(-2, 3, size),
        "skew": rng.uniform(-1, 1, size),
        "tail": rng.uniform(0.8, 1.5, size),
    }
    noise = rng.normal(size=(_DRAWS, size))
    x = np.sinh((np.arcsinh(noise) + data["skew"]) / data["tail"])
    draws = {"x": data["shift"] + data["unit"] * x}
    return from_draws(density(_sinh, {"x": (size,)}, data), draws, Moments())
