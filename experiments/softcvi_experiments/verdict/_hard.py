"""Shapes that are hard on purpose: many modes, bends, needles, scales of scales."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._mixtures import normals
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000


def _turn(rng, size: int) -> np.ndarray:
    return stats.ortho_group.rvs(size, random_state=rng) if size > 1 else np.eye(1)


def _shares(rng, count: int) -> np.ndarray:
    return 0.1 + (1 - 0.1 * count) * rng.dirichlet(np.ones(count))


def _repelling(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    left, right = np.triu_indices(x.size, 1)
    gaps = jnp.abs(x[left] - x[right])
    return data["force"] * jnp.sum(jnp.log(gaps)) - 0.5 * jnp.sum(x**2)


def repelling(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Points that repel each other (a log gas): a mode for each of their orders."""
    size, force = (2, 3, 5)[seed % 3], rng.uniform(1, 4)
    unit = 10 ** rng.uniform(-2, 2)
    shift = unit * rng.normal(0, 3)
    target = density(
        _repelling, {"x": (size,)}, {"shift": shift, "unit": unit, "force": force}
    )
    # The sum of squares is a gamma, and all points are alike.
    total = size + force * size * (size - 1) / 2
    right = {"x": np.full(size, shift)}, {"x": np.full(size, unit**2 * total / size)}
    return from_moments(target, *right, "closed form")


def _turned_wells(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return jnp.sum(data["tilt"] * z + 2 * data["far"] * z**2 - z**4) / data["heat"]


def turned_wells(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Quartic wells along turned axes: two modes for each axis, as powers."""
    size = (1, 2, 5)[seed % 3]
    unit, turn = 10 ** rng.uniform(-2, 2), _turn(rng, size)
    far, tilt = rng.uniform(1, 3, size), rng.uniform(-0.3, 0.3, size)
    heat, shift = rng.uniform(1.0, 2.5), unit * rng.normal(0, 3, size)
    z = np.linspace(-6, 6, 12001)[:, None]
    weights = special.softmax((tilt * z + 2 * far * z**2 - z**4) / heat, axis=0)
    mean = np.sum(weights * z, axis=0)
    variance = np.sum(weights * (z - mean) ** 2, axis=0)
    data = {
        "far": far,
        "tilt": tilt,
        "heat": heat,
        "shift": shift,
        "back": turn.T / unit,
    }
    target = density(_turned_wells, {"x": (size,)}, data)
    right = {"x": shift + unit * turn @ mean}, {"x": unit**2 * turn**2 @ variance}
    return from_moments(target, *right, "quadrature")


def _nearest(theta, data):
    z = (theta["x"] - data["centres"]) / data["widths"][:, None]
    return -0.5 * jnp.min(jnp.sum(z**2, axis=1) + data["costs"])


def nearest_centre(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """The distance to the nearest of several centres, squared: kinks between."""
    count, gap = rng.integers(2, 6), rng.uniform(3, 8)
    data = {
        "centres": rng.normal(0, gap, (count, 2)),
        "widths": 10 ** rng.uniform(-0.3, 0.3, count),
        "costs": rng.uniform(0, 2, count),
    }
    reach = np.abs(data["centres"]).max() + 15
    return latticed(_nearest, {"x": (np.full(2, -reach), np.full(2, reach))}, data, 601)


def _moons(theta, data):
    x, y = theta["x"] / data["unit"]
    turned = jnp.stack([x - 1, -y + data["gap"]])
    heights = []
    for a, b in (jnp.stack([x, y]), turned):
        radius = jnp.sqrt(a**2 + b**2 + 1e-12)
        rest = ((radius - 2) / data["width"]) ** 2 + 2 * (b / 2 - 0.9) ** 2
        heights.append(-0.5 * rest)
    return jnp.logaddexp(heights[0], heights[1] + data["more"])


def moons(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two arcs that reach into each other."""
    data = {
        "unit": 10 ** rng.uniform(-1, 1),
        "width": rng.uniform(0.1, 0.3),
        "gap": rng.uniform(0, 1),
        "more": rng.uniform(-1, 1),
    }
    corner = np.full(2, 7 * data["unit"])
    return latticed(_moons, {"x": (-corner, corner)}, data, 601)


def _spiral(theta, data):
    x, y = theta["x"] / data["unit"]
    radius = jnp.sqrt(x**2 + y**2 + 1e-12)
    turn = jnp.arctan2(y, x)
    z = jnp.sin((turn - data["twist"] * radius) / 2 + data["start"])
    # Half angles make one arm; the cut of the angle is where the sine is squared.
    return -0.5 * (z / data["width"]) ** 2 - 0.5 * ((radius - 3) / 1.0) ** 2


def spiral(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """One arm of a spiral that goes around about once."""
    data = {
        "unit": 10 ** rng.uniform(-1, 1),
        "twist": rng.uniform(0.8, 1.6) * rng.choice([-1, 1]),
        "start": rng.uniform(0, np.pi),
        "width": rng.uniform(0.15, 0.35),
    }
    corner = np.full(2, 12 * data["unit"])
    return latticed(_spiral, {"x": (-corner, corner)}, data, 601)


def needles(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Long thin normals that cross at one place, one along each axis."""
    size = (2, 3, 6)[seed % 3]
    thin, long = rng.uniform(0.1, 0.3), rng.uniform(2, 5)
    turn = _turn(rng, size)
    sds = np.full((size, size), thin) + (long - thin) * np.eye(size)
    covariances = [turn @ np.diag(s**2) @ turn.T for s in sds]
    means = np.repeat(rng.normal(0, 5, (1, size)), size, axis=0)
    return normals(_shares(rng, size), means, covariances)


def _spiked(theta, data):
    z = (theta["b"] - data["found"]) / data["error"]
    spike = -0.5 * (theta["b"] / data["narrow"]) ** 2 - jnp.log(data["narrow"])
    slab = -0.5 * (theta["b"] / data["wide"]) ** 2 - jnp.log(data["wide"])
    prior = jnp.logaddexp(
        jnp.log1p(-data["share"]) + spike, jnp.log(data["share"]) + slab
    )
    return jnp.sum(prior) - 0.5 * jnp.sum(z**2)


def spiked_effects(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects that are all but zero or not, each with its own estimate."""
    size = (2, 6, 20)[seed % 3]
    unit = 10 ** rng.uniform(-3, 3, size)
    error = unit * rng.uniform(0.5, 1.5, size)
    narrow, wide = unit * rng.uniform(0.08, 0.3), unit * rng.uniform(2, 6)
    share = rng.uniform(0.2, 0.6)
    found = np.where(rng.uniform(size=size) < share, wide, narrow) * rng.normal(
        size=size
    )
    found += error * rng.normal(size=size)
    heights, means, variances = [], [], []
    for sd, weight in ((narrow, 1 - share), (wide, share)):
        total = error**2 + sd**2
        heights.append(np.log(weight) - 0.5 * (np.log(total) + found**2 / total))
        means.append(sd**2 * found / total)
        variances.append(sd**2 * error**2 / total)
    weights = special.softmax(heights, axis=0)
    mean = np.sum(weights * means, axis=0)
    variance = np.sum(weights * (np.array(variances) + (means - mean) ** 2), axis=0)
    data = {"found": found, "error": error, "narrow": narrow, "wide": wide}
    target = density(_spiked, {"b": (size,)}, data | {"share": share})
    return from_moments(target, {"b": mean}, {"b": variance}, "closed form")


def concentric(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two normals around one place: far from each other where there are many axes."""
    size = (2, 8, 20)[seed % 3]
    ratio = rng.uniform(2, 4)
    weight = rng.uniform(0.3, 0.7)
    means = np.repeat(rng.normal(0, 3, (1, size)), 2, axis=0)
    return normals([weight, 1 - weight], means, [np.eye(size), ratio**2 * np.eye(size)])


def _scale_of_scale(theta, data):
    top, scale, x = theta["top"], theta["scale"], theta["x"]
    first = top / data["wide"]
    second = scale * jnp.exp(-0.5 * top)
    rest = x * jnp.exp(-0.5 * scale)
    total = first**2 + second**2 + jnp.sum(rest**2)
    return -0.5 * (total + top + x.size * scale)


def scale_of_scale(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel whose neck has a funnel of its own."""
    size, wide = (1, 3, 8)[seed % 3], rng.uniform(0.5, 1.2)
    top = wide * rng.normal(size=_DRAWS)
    scale = np.exp(0.5 * top) * rng.normal(size=_DRAWS)
    x = np.exp(0.5 * scale)[:, None] * rng.normal(size=(_DRAWS, size))
    target = density(
        _scale_of_scale, {"top": (), "scale": (), "x": (size,)}, {"wide": wide}
    )
    return from_draws(target, {"top": top, "scale": scale, "x": x}, Quantiles())


def _rosenbrock(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    first = (x[0] - 1) / data["wide"]
    rest = (x[1:] - data["bend"] * x[:-1] ** 2) / data["narrow"]
    return -0.5 * (first**2 + jnp.sum(rest**2))


def rosenbrock(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Each parameter bends over the one before it."""
    size = (2, 3, 4)[seed % 3]
    wide, narrow, bend = rng.uniform([0.5, 0.2, 0.4], [1.0, 0.6, 0.8])
    unit = 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 10, size)
    x = [1 + wide * rng.normal(size=_DRAWS)]
    for _ in range(size - 1):
        x.append(bend * x[-1] ** 2 + narrow * rng.normal(size=_DRAWS))
    draws = {"x": shift + unit * np.stack(x, axis=1)}
    data = {"wide": wide, "narrow": narrow, "bend": bend, "unit": unit, "shift": shift}
    return from_draws(density(_rosenbrock, {"x": (size,)}, data), draws, Quantiles())


def _cauchy(theta, data):
    z = (data["y"] - theta["place"]) * jnp.exp(-theta["log_scale"])
    rows = jnp.sum(jnp.log1p(z**2)) + z.size * theta["log_scale"]
    prior = (theta["place"] / data["wide"]) ** 2 + (theta["log_scale"] / 0.6) ** 2
    return -rows - 0.5 * prior


def cauchy_places(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Few readings that contradict each other, with Cauchy noise."""
    y = rng.normal(0, rng.uniform(4, 10), (2, 3, 5)[seed % 3])
    box = {"place": (-60.0, 60.0), "log_scale": (-4.5, 4.5)}
    return latticed(_cauchy, box, {"y": y, "wide": 10.0}, 601)


def _walls(theta, data):
    terms = data["rate"] * (theta["x"] @ data["ways"].T - data["border"])
    return -logsumexp(jnp.stack([terms, -terms]), axis=0).sum() * data["steep"]


def crystal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Linear walls all around, softened at their edges."""
    count = (3, 7)[seed % 2]
    turn = np.pi * (np.arange(count) + rng.uniform(0, 0.5, count)) / count
    data = {
        "ways": np.stack([np.cos(turn), np.sin(turn)], axis=1),
        "border": rng.normal(0, 2, count),
        "rate": 10 ** rng.uniform(-0.3, 1),
        "steep": rng.uniform(0.5, 1),
    }
    return latticed(_walls, {"x": (np.full(2, -60.0), np.full(2, 60.0))}, data, 601)
