"""Blocks of unlike kinds, and variables whose margins hide how they are linked."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from scipy import special

from softcvi.targets import UnconstrainedSpace, interval, positive
from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 400_000


def _four_blocks(theta, data):
    wells = (theta["pair"] - data["place"]) / data["sd"]
    height = jnp.logaddexp(
        jnp.log1p(-data["share"]) - 0.5 * jnp.sum(wells[0] ** 2),
        jnp.log(data["share"]) - 0.5 * jnp.sum(wells[1] ** 2),
    )
    one, two = theta["bend"]
    height -= 0.5 * (one**2 + ((two - one**2) / data["thin"]) ** 2)
    v, x = theta["log_scale"], theta["funnel"]
    height -= 0.5 * ((v / data["wide"]) ** 2 + jnp.sum(x**2) * jnp.exp(-v) + x.size * v)
    tails = jnp.log1p((theta["tails"] - data["shift"]) ** 2 / 6)
    return height - 3.5 * jnp.sum(tails)


def four_blocks(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two modes, a banana, a funnel and long tails, each for parameters of its own."""
    size, thin, wide = (1, 2, 5)[seed % 3], rng.uniform(0.4, 0.8), rng.uniform(0.6, 1.2)
    sd, share = 10 ** rng.uniform(-1, 1), rng.uniform(0.15, 0.5)
    place = sd * np.stack([rng.normal(size=size), rng.normal(size=size)])
    place[1] += sd * rng.uniform(5, 15) / np.sqrt(size)
    shift = rng.normal(0, 30, size)
    data = {"place": place, "sd": sd, "share": share, "thin": thin, "wide": wide}
    data["shift"] = shift
    mean = {"pair": (1 - share) * place[0] + share * place[1], "tails": shift}
    gap = place[1] - place[0]
    variance = {"pair": sd**2 + share * (1 - share) * gap**2}
    variance["tails"] = np.full(size, 1.5)
    mean |= {"bend": np.array([0.0, 1.0]), "log_scale": np.zeros(())}
    variance |= {"bend": np.array([1.0, 2 + thin**2]), "log_scale": np.array(wide**2)}
    mean["funnel"] = np.zeros(size)
    variance["funnel"] = np.full(size, np.exp(wide**2 / 2))
    shapes = {name: value.shape for name, value in mean.items()}
    target = density(_four_blocks, shapes, data)
    return from_moments(target, mean, variance, "closed form")


def _many_kinds(theta, data):
    rate, share, angle = theta["rate"], theta["share"], theta["angle"]
    height = (data["shape"] - 1) * jnp.log(rate) - rate / data["scale"]
    height += (data["a"] - 1) * jnp.log(share) + (data["b"] - 1) * jnp.log1p(-share)
    height += data["force"] * jnp.cos(2 * (angle - data["way"]))
    place = (theta["place"] - data["shift"]) / data["unit"]
    two = jnp.logaddexp(-0.5 * (place - data["far"]) ** 2, -0.5 * (place + 2) ** 2)
    return jnp.sum(height + two - jnp.abs(theta["error"] / data["wide"]))


def many_kinds(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rates, shares, angles, places and errors in one posterior, each as it should."""
    size = (1, 2, 5)[seed % 3]
    shape, scale = rng.uniform(0.7, 5, size), 10 ** rng.uniform(-4, 4, size)
    a, b = 10 ** rng.uniform(-0.2, 1.3, (2, size))
    force, way = rng.uniform(0.5, 4, size), rng.uniform(-1, 1, size)
    unit, far = 10 ** rng.uniform(-3, 3, size), rng.uniform(2, 8, size)
    shift, wide = unit * rng.normal(0, 20, size), 10 ** rng.uniform(-3, 3, size)
    data = {"shape": shape, "scale": scale, "a": a, "b": b, "force": force, "way": way}
    data |= {"unit": unit, "far": far, "shift": shift, "wide": wide}
    angle = 2 * np.pi * (np.arange(8_000)[:, None] + 0.5) / 8_000 - np.pi
    weights = special.softmax(force * np.cos(2 * (angle - way)), axis=0)
    middle = np.sum(weights * angle, axis=0)
    mean = {"rate": shape * scale, "share": a / (a + b), "angle": middle}
    mean |= {"place": shift + unit * (far - 2) / 2, "error": np.zeros(size)}
    variance = {"rate": shape * scale**2, "error": 2 * wide**2}
    variance["share"] = a * b / ((a + b) ** 2 * (a + b + 1))
    variance["angle"] = np.sum(weights * (angle - middle) ** 2, axis=0)
    variance["place"] = unit**2 * (1 + (far + 2) ** 2 / 4)
    space = UnconstrainedSpace(
        {
            "rate": positive(),
            "share": interval(0.0, 1.0),
            "angle": interval(-np.pi, np.pi),
        }
    )
    shapes = dict.fromkeys(("rate", "share", "angle", "place", "error"), (size,))
    target = density(_many_kinds, shapes, data, space)
    return from_moments(target, mean, variance, "closed form")


def _teardrop(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    force, u = data["force"], log_ndtr(z)
    total = logsumexp(-force * u)
    # The log of the sum of powers less their number but one (Clayton's copula).
    inner = total + jnp.log1p(-(z.size - 1) * jnp.exp(-total))
    link = -(1 + force) * jnp.sum(u) - (z.size + 1 / force) * inner
    return link - 0.5 * jnp.sum(z**2)


def teardrop(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals that agree when they are low and go their own ways when they are high."""
    size, force = (2, 4, 8)[seed % 3], rng.uniform(1, 5)
    unit = 10 ** rng.uniform(-2, 2, size) * rng.choice([-1, 1], size)
    shift = unit * rng.normal(0, 10, size)
    data = {"shift": shift, "unit": unit, "force": force}
    return closed(_teardrop, data, shift, unit**2)


def _checkerboard(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    side = jax.nn.log_sigmoid(data["force"] * jnp.prod(z))
    return side - 0.5 * jnp.sum(z**2)


def checkerboard(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals by themselves, of which only all together have half of the signs."""
    size, force = (2, 3, 5)[seed % 3], rng.uniform(4, 20) * rng.choice([-1, 1])
    unit = 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 5, size)
    data = {"shift": shift, "unit": unit, "force": force}
    return closed(_checkerboard, data, shift, unit**2)


def _skewed_by_cubic(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    odd = data["one"] @ z - (data["three"] @ z) ** 3
    return jax.nn.log_sigmoid(odd) - 0.5 * jnp.sum(z**2)


def skewed_by_cubic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals times a sigmoid of a cubic: one hump, or two with a bent gap between."""
    size = (2, 4, 12)[seed % 3]
    one, three = rng.normal(size=(2, size))
    one *= rng.uniform(2, 8) / np.linalg.norm(one)
    three *= rng.uniform(0.8, 1.8) / np.linalg.norm(three)
    unit = 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 5, size)
    z = rng.normal(size=(_DRAWS, size))
    chance = special.expit(z @ one - (z @ three) ** 3)
    # Points opposite to each other share all of the density.
    z *= np.where(rng.uniform(size=_DRAWS) < chance, 1, -1)[:, None]
    data = {"shift": shift, "unit": unit, "one": one, "three": three}
    target = density(_skewed_by_cubic, {"x": (size,)}, data)
    return from_draws(target, {"x": shift + unit * z}, Moments())


def _parted(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return jnp.log(data["floor"] + (data["way"] @ z) ** 2) - 0.5 * jnp.sum(z**2)


def parted(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A correlated normal with a deep furrow through its middle."""
    size, floor = (1, 4, 15)[seed % 3], 10 ** rng.uniform(-2.5, -0.5)
    factor = np.eye(size) + 0.5 * rng.normal(size=(size, size))
    factor *= 10 ** rng.uniform(-2, 2, size)[:, None]
    way = rng.normal(size=size)
    way /= np.linalg.norm(way)
    shift = np.linalg.norm(factor, axis=1) * rng.normal(0, 8, size)
    inner = np.eye(size) + 2 / (floor + 1) * np.outer(way, way)
    data = {"back": np.linalg.inv(factor), "shift": shift, "floor": floor, "way": way}
    return closed(_parted, data, shift, np.diag(factor @ inner @ factor.T).copy())


def _medley(theta, data):
    z = data["back"] @ theta["x"]
    first, second, third = jnp.split(z, 3)
    kinked = -jnp.abs(first)
    two = jnp.logaddexp(-0.5 * (second - 3) ** 2, -0.5 * (second + 3) ** 2)
    leaning = -third - 6 * jax.nn.softplus(-third)
    return jnp.sum(kinked + two + leaning)


def collinear_medley(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sums of kinked, two-humped and leaning parts of sizes from one to 1e-4."""
    size = (3, 6, 12)[seed % 3]
    scale = 10 ** -np.linspace(0, (2, 3, 4)[rng.integers(3)], size)
    turn = random_turn(rng, size) * rng.permutation(scale)
    part = size // 3
    # The leaning part is the log of a beta variable's odds, with five and one.
    lean = special.digamma(5.0) - special.digamma(1.0)
    wide = special.polygamma(1, 5.0) + special.polygamma(1, 1.0)
    mean = np.repeat([0.0, 0.0, lean], part)
    inner = np.repeat([2.0, 10.0, wide], part)
    back = np.linalg.inv(turn)
    return closed(_medley, {"back": back}, turn @ mean, turn**2 @ inner)
