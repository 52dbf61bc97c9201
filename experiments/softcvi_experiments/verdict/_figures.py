"""Figures in the plane and in space whose moments are known exactly."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000
_LOG_2PI = float(np.log(2 * np.pi))


def random_turn(rng, size: int) -> np.ndarray:
    return stats.ortho_group.rvs(size, random_state=rng) if size > 1 else np.eye(1)


def closed(log_prob, data, mean, variance) -> RandomPosterior:
    target = density(log_prob, {"x": np.shape(mean)}, data)
    right = {"x": np.asarray(mean)}, {"x": np.asarray(variance)}
    return from_moments(target, *right, "closed form")


def _two_mouths(theta, data):
    v = theta["v"]
    first, second = theta["open"] * jnp.exp(-v), theta["close"] * jnp.exp(v)
    total = jnp.sum(first**2) + jnp.sum(second**2)
    return -0.5 * ((v / data["wide"]) ** 2 + total)


def two_mouths(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel with a mouth at both ends: one wide where the other is narrow."""
    size, wide = (1, 3, 8)[seed % 3], rng.uniform(0.6, 1.3)
    v = wide * rng.normal(size=_DRAWS)
    z = rng.normal(size=(2, _DRAWS, size))
    draws = {"v": v, "open": z[0] * np.exp(v)[:, None]}
    draws["close"] = z[1] * np.exp(-v)[:, None]
    shapes = {"v": (), "open": (size,), "close": (size,)}
    return from_draws(density(_two_mouths, shapes, {"wide": wide}), draws, Quantiles())


def _boomerang(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    rest = (x[1:] - data["bend"] * jnp.abs(x[0])) / data["thin"]
    return -0.5 * (x[0] ** 2 + jnp.sum(rest**2))


def boomerang(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Parameters along the absolute value of another: a kink at the elbow."""
    size, thin = (2, 3, 8)[seed % 3], rng.uniform(0.1, 0.5)
    unit = 10 ** rng.uniform(-2, 2, size)
    shift, bend = unit * rng.normal(0, 5, size), rng.uniform(1, 3, size - 1)
    mean = shift + unit * np.append(0.0, bend * np.sqrt(2 / np.pi))
    variance = unit**2 * np.append(1.0, bend**2 * (1 - 2 / np.pi) + thin**2)
    data = {"shift": shift, "unit": unit, "bend": bend, "thin": thin}
    return closed(_boomerang, data, mean, variance)


def _product(theta, data):
    a, b = theta["x"]
    rest = (a * b - data["c"]) / data["sd"]
    return -0.5 * (rest**2 + (a**2 + b**2) / data["wide"] ** 2)


def hyperbola(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two numbers of which only the product was seen: both branches."""
    wide = rng.uniform(2, 6)
    data = {"c": rng.uniform(-3, 3), "sd": rng.uniform(0.3, 1), "wide": wide}
    corner = np.full(2, 7.5 * wide)
    return latticed(_product, {"x": (-corner, corner)}, data, 801)


def _flower(theta, data):
    x, y = (theta["x"] - data["shift"]) / data["unit"]
    square = x**2 + y**2 + 1e-12
    leaf = jnp.cos(data["leaves"] * jnp.arctan2(y, x) + data["start"])
    rest = (jnp.sqrt(square) - data["far"]) / data["thin"]
    return -0.5 * rest**2 - 0.5 * jnp.log(square) + data["force"] * leaf


def flower(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Leaves around a middle, alike but for where they point."""
    unit, far, thin = 10 ** rng.uniform(-2, 2), rng.uniform(4, 8), rng.uniform(0.4, 1)
    shift = unit * rng.normal(0, 6, 2)
    data = {"shift": shift, "unit": unit, "far": far, "thin": thin}
    data |= {"leaves": (3.0, 5.0, 8.0)[seed % 3], "start": rng.uniform(0, 6)}
    data["force"] = rng.uniform(0.5, 4)
    # From three leaves on, second moments are those of a circle.
    variance = np.full(2, unit**2 * (far**2 + thin**2) / 2)
    return closed(_flower, data, shift, variance)


def _cap(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    square = jnp.sum(x**2) + 1e-12
    radius = jnp.sqrt(square)
    rest = (radius - data["far"]) / data["thin"]
    side = data["force"] * (x @ data["way"]) / radius
    return -0.5 * rest**2 - 0.5 * (x.size - 1) * jnp.log(square) + side


def polar_cap(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A thin shell that is heavier towards one pole (von Mises and Fisher)."""
    size, force = (2, 4, 9)[seed % 3], rng.uniform(1, 10)
    unit, far, thin = 10 ** rng.uniform(-2, 2), rng.uniform(4, 8), rng.uniform(0.2, 0.8)
    way, shift = random_turn(rng, size)[0], unit * rng.normal(0, 6, size)
    pull = special.ive(size / 2, force) / special.ive(size / 2 - 1, force)
    along = 1 - (size - 1) * pull / force
    second = pull / force * (1 - way**2) + along * way**2
    mean = far * pull * way
    variance = unit**2 * ((far**2 + thin**2) * second - mean**2)
    data = {"shift": shift, "unit": unit, "far": far, "thin": thin}
    return closed(
        _cap, data | {"way": way, "force": force}, shift + unit * mean, variance
    )


def _dumbbell(theta, data):
    x, y = theta["x"] / data["unit"]
    discs = jnp.minimum(jnp.hypot(x - data["far"], y), jnp.hypot(x + data["far"], y))
    tube = (jnp.abs(y) < data["thin"]) & (jnp.abs(x) < data["far"])
    right = x > 0
    return jnp.where((discs < 1) | tube, jnp.where(right, data["more"], 0.0), -jnp.inf)


def dumbbell(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two flat discs of different height with a narrow bridge between them."""
    unit, far, thin = (
        10 ** rng.uniform(-1, 1),
        rng.uniform(1.5, 3),
        rng.uniform(0.1, 0.3),
    )
    more = rng.uniform(-1, 1)
    data = {"unit": unit, "far": far, "thin": thin, "more": more}
    x, y = np.meshgrid(np.linspace(-4, 4, 2401), np.linspace(-1, 1, 601))
    discs = np.minimum(np.hypot(x - far, y), np.hypot(x + far, y)) < 1
    inside = discs | ((np.abs(y) < thin) & (np.abs(x) < far))
    weights = inside * np.where(x > 0, np.exp(more), 1.0)
    weights = weights / weights.sum()
    mean = np.array([np.sum(weights * x), 0.0])
    variance = [np.sum(weights * x**2) - mean[0] ** 2, np.sum(weights * y**2)]
    target = density(_dumbbell, {"x": (2,)}, data)
    right = {"x": unit * mean}, {"x": unit**2 * np.array(variance)}
    return from_moments(target, *right, "quadrature")


def _terraces(theta, data):
    z = jnp.abs(theta["x"] - data["shift"]) / data["unit"]
    return -jnp.sum(data["drop"] * jnp.floor(z))


def terraces(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Densities that go down in steps: their slope is zero wherever there is one."""
    size = (1, 3, 10)[seed % 3]
    unit, drop = 10 ** rng.uniform(-2, 2, size), rng.uniform(0.3, 1, size)
    shift = unit * rng.normal(0, 5, size)
    k = np.arange(200)[:, None]
    weights = special.softmax(-drop * k, axis=0)
    variance = unit**2 * np.sum(weights * (k**2 + k + 1 / 3), axis=0)
    data = {"shift": shift, "unit": unit, "drop": drop}
    return closed(_terraces, data, shift, variance)


def _himmelblau(theta, data):
    x, y = (theta["x"] - data["shift"]) / data["unit"]
    high = (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2
    return -high / data["heat"]


def himmelblau(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Himmelblau's function: four valleys, alike at the bottom, none of them round."""
    unit = 10 ** rng.uniform(-2, 2)
    shift = unit * rng.normal(0, 3, 2)
    data = {"unit": unit, "shift": shift, "heat": 10 ** rng.uniform(0.5, 1.8)}
    box = {"x": (shift - 7 * unit, shift + 7 * unit)}
    return latticed(_himmelblau, box, data, 801)


def _egg_box(theta, data):
    x = theta["x"] / data["unit"]
    bumps = jnp.cos(data["waves"] * x[0]) * jnp.cos(data["waves"] * x[1])
    return data["force"] * bumps - 0.5 * jnp.sum((x - data["middle"]) ** 2)


def egg_box(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal full of holes and bumps, as on the board of a game."""
    unit, waves, force = 10 ** rng.uniform(-1, 1), *rng.uniform([1.5, 1], 4)
    data = {"unit": unit, "waves": waves, "force": force}
    corner = np.full(2, 10 * unit)
    middle = rng.normal(0, 0.7, 2)
    box = {"x": (-corner, corner)}
    return latticed(_egg_box, box, data | {"middle": middle}, 601)


def _saturn(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    square = jnp.sum(z**2) + 1e-12
    rest = (jnp.sqrt(square) - data["far"]) / data["thin"]
    ring = -0.5 * (rest**2 + jnp.log(square) + _LOG_2PI) - jnp.log(data["thin"])
    ball = -0.5 * jnp.sum(z**2)
    moon = -0.5 * jnp.sum(((z - data["moon"]) / 0.3) ** 2) - 2 * jnp.log(0.3)
    return logsumexp(jnp.log(data["share"]) + jnp.stack([ring, ball, moon]))


def saturn(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A planet with a ring and a small moon."""
    unit, far, thin = 10 ** rng.uniform(-2, 2), rng.uniform(5, 8), rng.uniform(0.3, 0.6)
    shift, share = unit * rng.normal(0, 3, 2), 0.1 + 0.7 * rng.dirichlet(np.ones(3))
    turn, away = rng.uniform(0, 2 * np.pi), rng.uniform(11, 15)
    moon = away * np.array([np.cos(turn), np.sin(turn)])
    data = {"unit": unit, "far": far, "thin": thin, "shift": shift, "moon": moon}
    mean = share[2] * moon
    second = share[0] * (far**2 + thin**2) / 2 + share[1] + share[2] * (0.09 + moon**2)
    variance = unit**2 * (second - mean**2)
    return closed(_saturn, data | {"share": share}, shift + unit * mean, variance)


def _chain_links(theta, data):
    heights = []
    for turn, middle in ((data["one"], 0.0), (data["two"], data["apart"])):
        u = turn @ theta["x"] / data["unit"] - middle * data["step"]
        square = u[0] ** 2 + u[1] ** 2 + 1e-12
        rest = (jnp.sqrt(square) - data["far"]) ** 2 + u[2] ** 2
        heights.append(-0.5 * rest / data["thin"] ** 2 - 0.5 * jnp.log(square))
    return jnp.logaddexp(heights[0], heights[1] + data["more"])


def chain_links(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two rings in space that hold each other."""
    unit, far, thin = 10 ** rng.uniform(-1, 1), rng.uniform(3, 5), rng.uniform(0.2, 0.4)
    one = random_turn(rng, 3)
    # The second ring lies across the first one, with its middle on it.
    two = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]]) @ one
    step = np.array([1.0, 0, 0])
    more = rng.uniform(-0.7, 0.7)
    data = {"one": one, "two": two, "unit": unit, "far": far, "thin": thin}
    data |= {"apart": far, "step": step, "more": more}
    share = special.expit(more)
    flat = np.diag([(far**2 + thin**2) / 2, (far**2 + thin**2) / 2, thin**2])
    middle = two.T @ (far * step)
    mean = share * middle
    second = (1 - share) * one.T @ flat @ one
    second += share * (two.T @ flat @ two + np.outer(middle, middle))
    variance = unit**2 * (np.diag(second) - mean**2)
    return closed(_chain_links, data, unit * mean, variance)


def _helix(theta, data):
    t, weights = data["t"], data["log_weights"]
    path = jnp.stack([jnp.cos(t), jnp.sin(t), data["rise"] * t], axis=1)
    z = (theta["x"] / data["unit"] - data["far"] * path) / data["thin"]
    return logsumexp(weights - 0.5 * jnp.sum(z**2, axis=1))


def helix(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A tube around a screw of one or two turns."""
    unit, far = 10 ** rng.uniform(-1, 1, 3), rng.uniform(3, 5)
    thin, rise, spread = rng.uniform(0.5, 0.9), rng.uniform(0.5, 0.8), rng.uniform(2, 4)
    t = np.linspace(-3, 3, 121) * spread
    log_weights = -0.5 * (t / spread) ** 2
    weights = special.softmax(log_weights)
    path = far * np.stack([np.cos(t), np.sin(t), rise * t], axis=1)
    mean = weights @ path
    variance = unit**2 * (weights @ (path - mean) ** 2 + thin**2)
    data = {"t": t, "log_weights": log_weights, "rise": rise, "far": far}
    return closed(_helix, data | {"thin": thin, "unit": unit}, unit * mean, variance)


def _octahedron(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return jnp.where(jnp.sum(jnp.abs(z)) < 1, 0.0, -jnp.inf)


def octahedron(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Flat on a turned octahedron, a lozenge in the plane, and nothing around."""
    size, unit = (2, 3, 6)[seed % 3], 10 ** rng.uniform(-1, 1)
    turn, shift = random_turn(rng, size), unit * rng.normal(0, 0.5, size)
    variance = np.full(size, unit**2 * 2 / ((size + 1) * (size + 2)))
    data = {"back": turn.T / unit, "shift": shift}
    return closed(_octahedron, data, shift, variance)


def _hollow(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    radius = jnp.sqrt(jnp.sum(z**2) + 1e-12)
    return data["power"] * jnp.log(radius) - radius


def hollow(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """No density in the middle, exponential tails around, in raw units."""
    size, power = (2, 3, 6)[seed % 3], rng.uniform(1, 12)
    unit = 10 ** rng.uniform(-2, 2, size)
    turn, shift = random_turn(rng, size), unit * rng.normal(0, 8, size)
    inner = (power + size) * (power + size + 1) / size
    data = {"back": turn.T / unit, "shift": shift, "power": power}
    return closed(_hollow, data, shift, unit**2 * inner)


def _saw(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    tooth = data["teeth"] * z - jnp.floor(data["teeth"] * z)
    return jnp.sum(-0.5 * z**2 + jnp.log1p(data["high"] * tooth))


def saw(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals with the teeth of a saw: jumps up at even distances."""
    size = (1, 4, 12)[seed % 3]
    unit, teeth = 10 ** rng.uniform(-2, 2, size), rng.uniform(0.4, 2, size)
    shift, high = unit * rng.normal(0, 5, size), rng.uniform(1, 8, size)
    z = np.linspace(-9, 9, 20_001)[:, None]
    weights = np.exp(-0.5 * z**2) * (1 + high * (teeth * z - np.floor(teeth * z)))
    weights /= weights.sum(axis=0)
    mean = np.sum(weights * z, axis=0)
    variance = unit**2 * np.sum(weights * (z - mean) ** 2, axis=0)
    data = {"shift": shift, "unit": unit, "teeth": teeth, "high": high}
    return closed(_saw, data, shift + unit * mean, variance)
