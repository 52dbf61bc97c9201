"""Densities that end somewhere: odd outlines, with nothing or no number beyond."""

import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._patchwork import mixed
from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
)

_DRAWS = 400_000


def _hollow_box(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    outside = jnp.any(jnp.abs(z) > 1)
    hole = jnp.all(jnp.abs(z - data["middle"]) < data["half"])
    return jnp.where(outside, -jnp.inf, jnp.where(hole, -data["deep"], 0.0))


def hollow_box(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A flat box with a box inside it where there is almost no density."""
    size, deep = (2, 3, 5)[seed % 3], rng.uniform(1, 5)
    unit = 10 ** rng.uniform(-2, 2, size)
    shift, half = unit * rng.normal(0, 5, size), rng.uniform(0.5, 0.9, size)
    middle = rng.uniform(-1, 1, size) * (1 - half)
    data = {"shift": shift, "unit": unit, "middle": middle, "half": half, "deep": deep}
    # A box from which a part of another one is taken.
    weights = np.array([1.0, np.expm1(-deep) * np.prod(half)])
    wide = np.stack([np.ones(size), half**2]) / 3
    mean, variance = mixed(
        weights / weights.sum(), np.stack([0 * middle, middle]), wide
    )
    return closed(_hollow_box, data, shift + unit * mean, unit**2 * variance)


def _notched_box(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    inside = jnp.all((z > 0) & (z < 1)) & ~jnp.all(z > 1 - data["notch"])
    return jnp.where(inside, data["tilt"] @ z, -jnp.inf)


def notched_box(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A box without one of its corners, with a slope: the letter L in the plane."""
    size = (2, 3, 6)[seed % 3]
    unit = 10 ** rng.uniform(-2, 2, size) * rng.choice([-1, 1], size)
    shift, notch = unit * rng.normal(0, 5, size), rng.uniform(0.35, 0.5, size)
    tilt = -rng.uniform(0.2, 2, size)
    # Truncated exponentials, of which the corner's are taken away.
    grid = (np.arange(20_000)[:, None] + 0.5) / 20_000
    heights = np.stack([np.exp(tilt * z) for z in (grid, 1 - notch + notch * grid)])
    points = np.stack([grid + 0 * notch, 1 - notch + notch * grid])
    sides = np.stack([np.ones(size), notch])
    weights = np.prod(heights.mean(axis=1) * sides, axis=1) * np.array([1, -1])
    shares = heights / heights.sum(axis=1, keepdims=True)
    means = np.sum(shares * points, axis=1)
    inner = np.sum(shares * (points - means[:, None]) ** 2, axis=1)
    mean, variance = mixed(weights / weights.sum(), means, inner)
    data = {"shift": shift, "unit": unit, "notch": notch, "tilt": tilt}
    return closed(_notched_box, data, shift + unit * mean, unit**2 * variance)


def _bitten(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    bite = jnp.sum((z - data["place"]) ** 2) < data["small"] ** 2
    return jnp.where((jnp.sum(z**2) < 1) & ~bite, 0.0, -jnp.inf)


def bitten(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A flat disc or ball with a round hole at its edge."""
    size, small = (2, 3, 5)[seed % 3], rng.uniform(0.35, 0.48)
    unit, place = 10 ** rng.uniform(-2, 2), rng.normal(size=size)
    shift = unit * rng.normal(0, 5, size)
    place *= (1 - small) / np.linalg.norm(place)
    weights = np.array([1, -(small**size)])
    wide = np.array([[1.0], [small**2]]) / (size + 2)
    mean, variance = mixed(weights / weights.sum(), np.stack([0 * place, place]), wide)
    data = {"shift": shift, "unit": unit, "place": place, "small": small}
    return closed(_bitten, data, shift + unit * mean, unit**2 * variance)


def _log_ratios(theta, data):
    x, a = theta["x"], data["a"]
    return a[:-1] @ x - jnp.sum(a) * jnp.log1p(jnp.sum(jnp.exp(x)))


def log_ratios(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of a whole, uneven ones, as log ratios to the last of them."""
    size = (1, 4, 12)[seed % 3]
    a = 10 ** rng.uniform(-0.4, 1.5, size + 1)
    mean = special.digamma(a[:-1]) - special.digamma(a[-1])
    variance = special.polygamma(1, a[:-1]) + special.polygamma(1, a[-1])
    return closed(_log_ratios, {"a": a}, mean, variance)


def _sides(rng) -> dict[str, np.ndarray]:
    """Half planes that leave a polygon around the origin."""
    count = int(rng.integers(3, 7))
    turn = 2 * np.pi * (np.arange(count) + rng.uniform(-0.2, 0.2, count)) / count
    ways = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    unit = 10 ** rng.uniform(-2, 2, 2)
    return {"ways": ways / unit, "far": rng.uniform(0.4, 2, count), "unit": unit}


def _polygon(theta, data):
    x = theta["x"]
    inside = jnp.all(data["ways"] @ x < data["far"])
    return jnp.where(inside, data["slope"] @ x, -jnp.inf)


def polygon(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A slope on a polygon with three to six sides, highest at a corner."""
    data = _sides(rng)
    data["slope"] = rng.normal(0, (0.3, 1.5, 4)[seed % 3], 2) / data["unit"]
    corner = 8 * data["unit"]
    return latticed(_polygon, {"x": (-corner, corner)}, data, 1001)


def _barriers(theta, data):
    return data["power"] @ jnp.log(data["far"] - data["ways"] @ theta["x"])


def barriers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Powers of the distances to the sides of a polygon: beyond, no number at all."""
    data = _sides(rng)
    low, high = ((0.2, 1), (0.5, 3), (2, 12))[seed % 3]
    data["power"] = rng.uniform(low, high, data["far"].size)
    corner = 8 * data["unit"]
    return latticed(_barriers, {"x": (-corner, corner)}, data, 1001)


def _dome(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return data["power"] * jnp.log1p(-jnp.sum(z**2))


def dome(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A dome above an ellipsoid of unlike axes: outside, no number at all."""
    size, power = (2, 5, 12)[seed % 3], 10 ** rng.uniform(-0.7, 0.7)
    unit = 10 ** rng.uniform(-2, 2)
    factor = unit * random_turn(rng, size) * 10 ** rng.uniform(-0.8, 0.8, size)
    shift = unit * rng.normal(0, 10, size)
    variance = np.sum(factor**2, axis=1) / (size + 2 * power + 2)
    data = {"back": np.linalg.inv(factor), "shift": shift, "power": power}
    return closed(_dome, data, shift, variance)


def _cone(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    inside = (z[0] > 0) & (jnp.sum(z[1:] ** 2) < (data["open"] * z[0]) ** 2)
    return jnp.where(inside, -z[0], -jnp.inf)


def cone(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential along a cone, highest in its point, and nothing around it."""
    size, opening = (2, 4, 8)[seed % 3], rng.uniform(0.3, 2)
    turn, unit = random_turn(rng, size), 10 ** rng.uniform(-2, 2)
    shift = unit * rng.normal(0, 10, size)
    inner = size * np.append(1.0, np.full(size - 1, opening**2))
    data = {"back": turn.T / unit, "shift": shift, "open": opening}
    mean = shift + unit * size * turn[:, 0]
    return closed(_cone, data, mean, unit**2 * turn**2 @ inner)


def _arcsine(theta, data):
    z = (theta["x"] - data["low"]) / data["unit"]
    inside = (z > 0) & (z < 1)
    z = jnp.where(inside, z, 0.5)
    height = (data["a"] - 1) * jnp.log(z) + (data["b"] - 1) * jnp.log1p(-z)
    return jnp.sum(jnp.where(inside, height, -jnp.inf))


def arcsine(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Between two ends where the density is highest, without bounds."""
    size = (1, 2, 6)[seed % 3]
    a, b = rng.uniform(0.5, 0.95, (2, size))
    unit = 10 ** rng.uniform(-2, 2, size)
    low, total = unit * rng.normal(0, 1, size), a + b
    data = {"low": low, "unit": unit, "a": a, "b": b}
    variance = unit**2 * a * b / (total**2 * (total + 1))
    return closed(_arcsine, data, low + unit * a / total, variance)


def _orthant(theta, data):
    z = data["factor"] @ (theta["x"] / data["unit"] - data["middle"])
    return jnp.where(jnp.all(theta["x"] > 0), -0.5 * jnp.sum(z**2), -jnp.inf)


def orthant(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Correlated normals all of which must be above zero."""
    size, unit = (2, 3, 5)[seed % 3], 10 ** rng.uniform(-2, 2)
    inside = np.zeros((0, size))
    while len(inside) < 2_000:
        factor = np.eye(size) + 0.8 * rng.normal(size=(size, size))
        middle = rng.normal(0.2, 1, size)
        x = middle + rng.normal(size=(40_000, size)) @ factor.T
        inside = x[np.all(x > 0, axis=1)]
    count = int(_DRAWS * 40_000 / len(inside))
    parts = []
    for _ in range(10):
        x = middle + rng.normal(size=(count // 10, size)) @ factor.T
        parts.append(x[np.all(x > 0, axis=1)])
    data = {"factor": np.linalg.inv(factor), "middle": middle, "unit": unit}
    target = density(_orthant, {"x": (size,)}, data)
    return from_draws(target, {"x": unit * np.concatenate(parts)}, Moments())


def _tents(theta, data):
    z = jnp.abs(data["back"] @ (theta["x"] - data["shift"]))
    height = jnp.log1p(-jnp.minimum(z, 0.999999))
    return jnp.sum(jnp.where(z < 1, height, -jnp.inf))


def tents(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Triangular densities along turned axes: a ridge on top, and an end."""
    size, unit = (1, 4, 10)[seed % 3], 10 ** rng.uniform(-2, 2)
    factor = unit * random_turn(rng, size) * 10 ** rng.uniform(-0.5, 0.5, size)
    shift = unit * rng.normal(0, 10, size)
    data = {"back": np.linalg.inv(factor), "shift": shift}
    return closed(_tents, data, shift, np.sum(factor**2, axis=1) / 6)
