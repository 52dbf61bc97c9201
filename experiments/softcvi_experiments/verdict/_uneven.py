"""Tables, kinks, steps and ripples: densities that no polynomial describes."""

import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import RandomPosterior


def _interpolated(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    edge = data["knots"][-1]
    inside = jnp.clip(z, -edge, edge)
    tails = 3.0 * jnp.abs(z - inside)
    return jnp.sum(jnp.interp(inside, data["knots"], data["table"]) - tails)


def interpolated(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A table of log densities with straight lines between, as a lookup would do it."""
    size, knots = (1, 2, 5)[seed % 3], np.linspace(-6, 6, 13)
    table = rng.normal(0, 1.2, 13) - 0.1 * knots**2
    z = np.linspace(-14, 14, 56_001)
    inside = np.clip(z, -6, 6)
    weights = special.softmax(np.interp(inside, knots, table) - 3 * np.abs(z - inside))
    mean = weights @ z
    inner = weights @ (z - mean) ** 2
    unit, turn = 10 ** rng.uniform(-2, 2), random_turn(rng, size)
    shift = unit * rng.normal(0, 8, size)
    data = {"back": turn.T / unit, "shift": shift, "knots": knots, "table": table}
    mean = shift + unit * turn.sum(axis=1) * mean
    return closed(_interpolated, data, mean, np.full(size, unit**2 * inner))


def _histogram_prior(theta, data):
    x = theta["x"]
    place = jnp.clip(jnp.searchsorted(data["edges"], x) - 1, 0, data["high"].size - 1)
    inside = (x > data["edges"][0]) & (x < data["edges"][-1])
    prior = jnp.where(inside, data["high"][place], -jnp.inf)
    return jnp.sum(prior - 0.5 * ((x - data["y"]) / data["sd"]) ** 2)


def histogram_prior(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Measurements whose prior is a histogram of earlier ones: jumps, and two ends."""
    size, unit = (1, 3, 8)[seed % 3], 10 ** rng.uniform(-1, 2)
    edges = np.cumsum(rng.uniform(0.4, 1.6, 10))
    edges -= edges.mean()
    high, sd = rng.normal(0, 1.5, 9), rng.uniform(0.7, 3, size)
    y = rng.uniform(edges[1], edges[-2], size)
    # Pieces of normals, each with its mass, mean and variance.
    low, top = edges[:-1, None], edges[1:, None]
    pieces = stats.truncnorm((low - y) / sd, (top - y) / sd, loc=y, scale=sd)
    mass = stats.norm.cdf((top - y) / sd) - stats.norm.cdf((low - y) / sd)
    weights = np.exp(high)[:, None] * mass
    weights /= weights.sum(axis=0)
    mean = np.sum(weights * pieces.mean(), axis=0)
    spread = pieces.var() + (pieces.mean() - mean) ** 2
    data = {"edges": unit * edges, "high": high, "y": unit * y, "sd": unit * sd}
    variance = unit**2 * np.sum(weights * spread, axis=0)
    return closed(_histogram_prior, data, unit * mean, variance)


def _corduroy(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    ribs = 1 + data["deep"] * jnp.cos(data["fast"] * z + data["start"])
    return jnp.sum(jnp.log(ribs) - 0.5 * z**2)


def corduroy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal with fine ribs along each axis, up to eight to a standard deviation."""
    size = (1, 3, 8)[seed % 3]
    deep, fast = rng.uniform(0.5, 0.95), 10 ** rng.uniform(0.5, 1.7, size)
    start = rng.uniform(0, 6, size)
    z = np.linspace(-9, 9, 100_001)[:, None]
    weights = (1 + deep * np.cos(fast * z + start)) * np.exp(-0.5 * z**2)
    weights /= weights.sum(axis=0)
    mean = np.sum(weights * z, axis=0)
    inner = np.sum(weights * (z - mean) ** 2, axis=0)
    unit, turn = 10 ** rng.uniform(-2, 2), random_turn(rng, size)
    shift = unit * rng.normal(0, 5, size)
    data = {"back": turn.T / unit, "shift": shift, "deep": deep, "fast": fast}
    mean, variance = shift + unit * turn @ mean, unit**2 * turn**2 @ inner
    return closed(_corduroy, data | {"start": start}, mean, variance)


def _sup_norm(theta, data):
    return -jnp.max(jnp.abs(data["back"] @ (theta["x"] - data["shift"])))


def sup_norm(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential in the largest of several errors: cubes within cubes, turned."""
    size = (2, 5, 12)[seed % 3]
    factor = np.eye(size) + 0.5 * rng.normal(size=(size, size))
    factor *= 10 ** rng.uniform(-2, 2, size)[:, None]
    shift = np.linalg.norm(factor, axis=1) * rng.normal(0, 20, size)
    # The largest is a gamma variable, and points are uniform on the sides of a cube.
    inner = (size + 1) * (size + 2) / 3
    data = {"back": np.linalg.inv(factor), "shift": shift}
    return closed(_sup_norm, data, shift, inner * np.sum(factor**2, axis=1))


def _hinge(theta, data):
    losses = jnp.maximum(0.0, 1 - data["y"] * (data["x"] @ theta["slope"]))
    prior = -0.5 * jnp.sum((theta["slope"] / data["wide"]) ** 2)
    return prior - data["strict"] * jnp.sum(losses)


def hinge(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A support vector machine, read as a posterior: a kink for each observation."""
    size, count, points = ((2, 12, 801), (3, 30, 141), (3, 60, 141))[seed % 3]
    unit = 10 ** rng.uniform(-3, 3, size)
    z = rng.normal(size=(count, size))
    y = np.where(z @ rng.normal(size=size) + rng.normal(size=count) > 0, 1.0, -1.0)
    data = {"x": z * unit, "y": y, "wide": 3 / unit, "strict": rng.uniform(0.7, 2)}
    corner = 21 / unit
    return latticed(_hinge, {"slope": (-corner, corner)}, data, points)
