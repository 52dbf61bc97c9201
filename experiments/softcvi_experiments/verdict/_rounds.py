"""Closed curves, shells and angles, whose moments are integrals over one number."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special

from softcvi.targets import UnconstrainedSpace, interval
from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._patchwork import mixed
from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 400_000


def _eggshell(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    square = jnp.sum(z**2) + 1e-12
    rest = (jnp.sqrt(square) - 1) / data["thin"]
    return -0.5 * rest**2 - 0.5 * (z.size - 1) * jnp.log(square)


def eggshell(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A thin shell of unlike axes, up to ten times as long as wide."""
    size, thin = (2, 3, 7)[seed % 3], rng.uniform(0.04, 0.15)
    factor = random_turn(rng, size) * 10 ** rng.uniform(-0.5, 0.5, size)
    factor *= 10 ** rng.uniform(-2, 2)
    shift = np.linalg.norm(factor) * rng.normal(0, 4, size)
    variance = np.sum(factor**2, axis=1) * (1 + thin**2) / size
    data = {"back": np.linalg.inv(factor), "shift": shift, "thin": thin}
    return closed(_eggshell, data, shift, variance)


def _bubbles(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"] - data["middle"]
    square = jnp.sum(z**2, axis=1) + 1e-12
    rest = (jnp.sqrt(square) - data["far"]) / data["thin"]
    shells = -0.5 * rest**2 - 0.5 * (z.shape[1] - 1) * jnp.log(square)
    return logsumexp(data["log_height"] + shells)


def bubbles(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Three shells of unlike size and thickness, within, across or beside another."""
    size, unit = (2, 3, 5)[seed % 3], 10 ** rng.uniform(-2, 2)
    far, thin = rng.uniform(2, 6, 3), rng.uniform(0.15, 0.35, 3)
    middle, weights = rng.normal(0, 3, (3, size)), 0.15 + 0.55 * rng.dirichlet([2] * 3)
    shift = unit * rng.normal(0, 10, size)
    data = {"shift": shift, "unit": unit, "middle": middle, "far": far, "thin": thin}
    area = np.log(thin)
    data["log_height"] = np.log(weights) - area
    inner = ((far**2 + thin**2) / size)[:, None]
    mean, variance = mixed(weights, middle, inner)
    return closed(_bubbles, data, shift + unit * mean, unit**2 * variance)


def _tube(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    rest = jnp.sum((z - data["path"]) ** 2, axis=1) / data["thin"] ** 2
    return logsumexp(data["log_weights"] - 0.5 * rest)


def _around_path(rng, path, weights, thin: float) -> RandomPosterior:
    """A mixture of so many normals along a path that they cannot be told apart."""
    size, weights = path.shape[1], weights / weights.sum()
    factor = 10 ** rng.uniform(-2, 2) * random_turn(rng, size)
    shift = np.linalg.norm(factor) * rng.normal(0, 8, size)
    middle = weights @ path
    covariance = (path - middle).T @ (weights[:, None] * (path - middle))
    covariance = factor @ (covariance + thin**2 * np.eye(size)) @ factor.T
    data = {"back": np.linalg.inv(factor), "shift": shift, "path": path}
    data |= {"log_weights": np.log(weights), "thin": thin}
    return closed(_tube, data, shift + factor @ middle, np.diag(covariance).copy())


def galaxy_arms(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to four arms of a galaxy, some brighter than others."""
    arms, t = (2, 3, 4)[seed % 3], np.linspace(0.4, 1, 60)
    turn = 2 * np.pi * np.arange(arms)[:, None] / arms
    turn = turn + rng.uniform(2, 5) * t
    far = rng.uniform(6, 9) * t
    path = np.stack([far * np.cos(turn), far * np.sin(turn)], axis=-1).reshape(-1, 2)
    weights = np.repeat(rng.uniform(0.5, 2, arms), t.size)
    return _around_path(rng, path, weights, rng.uniform(0.3, 0.5))


def trefoil(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A tube around a knot in space, heavier along some of it."""
    t = np.linspace(0, 2 * np.pi, 151)[:-1]
    x, y = np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t)
    path = (2.0, 2.5, 3.0)[seed % 3] * np.stack([x, y, -np.sin(3 * t)], axis=1)
    weights = np.exp(rng.uniform(0, 1) * np.cos(t + rng.uniform(0, 6)))
    return _around_path(rng, path, weights, rng.uniform(0.3, 0.5))


def _compass(theta, data):
    north = data["force"] * jnp.cos(theta["angle"] - data["way"])
    axis = data["axis"] * jnp.cos(2 * theta["angle"] - data["side"])
    return jnp.sum(north + axis)


def compass_south(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Directions near south, where the circle was cut: at both ends of the interval."""
    size = (1, 3, 8)[seed % 3]
    data = {"force": rng.uniform(0.5, 2.5, size), "axis": rng.uniform(0, 0.8, size)}
    data["way"] = np.pi + rng.normal(0, 0.4, size)
    data["side"] = rng.uniform(0, 2 * np.pi, size)
    angle = 2 * np.pi * (np.arange(8_000)[:, None] + 0.5) / 8_000 - np.pi
    heights = data["force"] * np.cos(angle - data["way"])
    heights += data["axis"] * np.cos(2 * angle - data["side"])
    weights = special.softmax(heights, axis=0)
    mean = np.sum(weights * angle, axis=0)
    variance = np.sum(weights * (angle - mean) ** 2, axis=0)
    space = UnconstrainedSpace({"angle": interval(-np.pi, np.pi)})
    target = density(_compass, {"angle": (size,)}, data, space)
    return from_moments(target, {"angle": mean}, {"angle": variance}, "quadrature")


def _torsions(theta, data):
    one, two = theta["angle"] - data["way"]
    alone = data["force"][0] * jnp.cos(one) + data["force"][1] * jnp.cos(two)
    height = alone + data["link"] * jnp.sin(one) * jnp.sin(two)
    return jnp.where(jnp.all(jnp.abs(theta["angle"]) < jnp.pi), height, -jnp.inf)


def torsions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two angles of a protein (the sine model): one hump, or two where linked much."""
    force = rng.uniform(1, 6, 2)
    link = (0.6, 2, 4)[seed % 3] * np.sqrt(force.prod()) * rng.choice([-1, 1])
    data = {"force": force, "link": link, "way": rng.uniform(-1.5, 1.5, 2)}
    corner = np.full(2, np.pi)
    return latticed(_torsions, {"angle": (-corner, corner)}, data, 801)


def _mobius(theta, data):
    x, y, z = theta["x"] / data["unit"]
    radius, half = jnp.hypot(x, y), 0.5 * jnp.arctan2(y, x)
    out = radius - data["far"]
    one = jnp.cos(half) * out + jnp.sin(half) * z
    two = jnp.cos(half) * z - jnp.sin(half) * out
    return -0.5 * ((one / data["wide"]) ** 2 + (two / data["thin"]) ** 2) - jnp.log(
        radius
    )


def mobius(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A band around a circle, with half a turn in it."""
    far, unit = (6.0, 9.0, 15.0)[seed % 3], 10 ** rng.uniform(-2, 2)
    wide, thin = rng.uniform(0.6, 0.9), rng.uniform(0.1, 0.25)
    turn = rng.uniform(-np.pi, np.pi, _DRAWS)
    one, two = wide * rng.normal(size=_DRAWS), thin * rng.normal(size=_DRAWS)
    half = turn / 2
    radius = far + np.cos(half) * one - np.sin(half) * two
    z = np.sin(half) * one + np.cos(half) * two
    x = unit * np.stack([radius * np.cos(turn), radius * np.sin(turn), z], axis=1)
    data = {"unit": unit, "far": far, "wide": wide, "thin": thin}
    return from_draws(density(_mobius, {"x": (3,)}, data), {"x": x}, Moments())


def _axes(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    square = jnp.sum(x**2) + 1e-12
    rest = (jnp.sqrt(square) - data["far"]) / data["thin"]
    axis = data["force"] * (x @ data["way"]) ** 2 / square
    return axis - 0.5 * rest**2 - 0.5 * (x.size - 1) * jnp.log(square)


def axes_not_directions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A shell with two opposite poles, or with a belt between them (Watson)."""
    size, force = (2, 3, 6)[seed % 3], rng.uniform(1.5, 6) * rng.choice([-1, 1])
    far, thin = rng.uniform(3, 6), rng.uniform(0.2, 0.6)
    unit, way = 10 ** rng.uniform(-2, 2), random_turn(rng, size)[0]
    shift = unit * rng.normal(0, 10, size)
    # Along the axis, the cosine of the angle is an integral over the angle.
    angle = np.pi * (np.arange(20_000) + 0.5) / 20_000
    heights = force * np.cos(angle) ** 2 + (size - 2) * np.log(np.sin(angle))
    along = special.softmax(heights) @ np.cos(angle) ** 2
    second = (1 - along) / (size - 1) * (1 - way**2) + along * way**2
    data = {"shift": shift, "unit": unit, "far": far, "thin": thin}
    variance = unit**2 * (far**2 + thin**2) * second
    return closed(_axes, data | {"way": way, "force": force}, shift, variance)


def _pond(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    square = jnp.sum(z**2) + 1e-12
    waves = jnp.cos(data["fast"] * jnp.sqrt(square) + data["start"])
    return data["force"] * waves - 0.5 * square / data["wide"] ** 2


def pond(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rings of waves around a stone that was thrown in."""
    size, unit = (2, 3, 6)[seed % 3], 10 ** rng.uniform(-2, 2)
    data = {"fast": rng.uniform(2, 4), "start": rng.uniform(0, 6)}
    data |= {"force": rng.uniform(0.5, 2), "wide": rng.uniform(2, 4)}
    r = 15 * data["wide"] * (np.arange(60_000) + 0.5) / 60_000
    heights = data["force"] * np.cos(data["fast"] * r + data["start"])
    heights += (size - 1) * np.log(r) - 0.5 * (r / data["wide"]) ** 2
    shift = unit * rng.normal(0, 20, size)
    variance = np.full(size, unit**2 * (special.softmax(heights) @ r**2) / size)
    return closed(_pond, data | {"shift": shift, "unit": unit}, shift, variance)
