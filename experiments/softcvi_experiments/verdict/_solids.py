"""Things that decay, cool, dry and melt: curves with few readings."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from scipy import special

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._reactions import box, misfit


def _stretched(theta, data):
    power = jnp.exp(theta["log_power"])
    mean = jnp.exp(-((data["t"] * jnp.exp(-theta["log_time"])) ** power))
    prior = around(theta, log_time=(data["guess"], 2), log_power=(-0.4, 0.5))
    return misfit(data, mean) + prior


def stretched_decay(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A glass that relaxes more and more slowly (Kohlrausch)."""
    guess, power = rng.normal(0, 5), np.exp(rng.normal(-0.5, 0.3))
    t = np.exp(guess + rng.uniform(-2, 0.5) + np.linspace(-1.5, 1.5, 6))
    sd = rng.uniform(0.05, 0.15)
    y = np.exp(-((t * np.exp(-guess)) ** power)) + sd * rng.normal(size=6)
    data = {"t": t, "y": y, "sd": sd, "guess": guess + rng.normal()}
    centre = {"log_time": data["guess"], "log_power": -0.4}
    return latticed(_stretched, box(centre, 15.0) | {"log_power": (-4, 3)}, data, 401)


def _soaked(theta, data):
    depth = jnp.exp(0.5 * (theta["log_way"] + jnp.log(data["hours"])))
    mean = jnp.exp(theta["log_edge"]) * erfc(data["x"] / (2 * depth))
    prior = around(theta, log_way=(data["guess"], 2), log_edge=(0, 1))
    return misfit(data, mean) + prior


def soaked(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Salt that soaks into concrete: how quickly, and how much at the surface."""
    unit, hours = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(1, 5)
    x = unit * np.array([0.5, 1.0, 2.0, 3.0])
    sd, edge = rng.uniform(0.05, 0.2), np.exp(0.4 * rng.normal())
    y = edge * special.erfc(x / unit / 2) + sd * rng.normal(size=4)
    guess = 2 * np.log(unit) - np.log(hours) + rng.normal()
    data = {"x": x, "y": y, "sd": sd, "hours": hours, "guess": guess}
    box = {"log_way": (guess - 16, guess + 16), "log_edge": (-6.5, 6.5)}
    return latticed(_soaked, box, data, 401)


def _cooling(theta, data):
    rest = jnp.exp(-jnp.exp(theta["log_rate"]) * data["t"])
    mean = theta["room"] + (theta["hot"] - theta["room"]) * rest
    prior = around(theta, log_rate=(data["guess"], 1.5), room=(20, 10), hot=(60, 30))
    return misfit(data, mean) + prior


def cooling(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A body that cools, read until it is cold or long before."""
    count, long = (4, 8, 20)[seed % 3], rng.uniform(0.3, 3)
    unit, room, hot = 10 ** rng.uniform(0, 4), rng.normal(20, 5), rng.normal(60, 10)
    t = np.linspace(0.05, 1, count) * long
    y = room + (hot - room) * np.exp(-t) + rng.normal(size=count)
    guess = -np.log(unit) + 0.5 * rng.normal()
    data = {"t": unit * t, "y": y, "sd": 1.0, "guess": guess}

    def conditional(u):
        rest = np.exp(-np.exp(u) * data["t"])
        design = np.stack([1 - rest, rest], axis=-1)
        height, *others = linear_given(design, y, 1.0, [20, 60], [10, 30])
        return height - 0.5 * ((u[:, 0] - guess) / 1.5) ** 2, *others

    outer, inner = {"log_rate": (guess - 12, guess + 12)}, {"room": (), "hot": ()}
    return nested(_cooling, outer, inner, data, conditional, 3001)


def _vapour(theta, data):
    mean = theta["a"] - theta["b"] / (data["t"] + theta["c"])
    return misfit(data, mean) + around(theta, a=(10, 3), b=(1500, 500), c=(-40, 15))


def vapour(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Pressure of a vapour by temperature: three numbers all but one (Antoine)."""
    count = (5, 10, 30)[seed % 3]
    t, sd = np.linspace(290, rng.uniform(320, 400), count), 10 ** rng.uniform(-2.5, -1)
    a, b, c = rng.normal([10, 1500, -40], [1, 150, 10])
    y = a - b / (t + c) + sd * rng.normal(size=count)
    data = {"t": t, "y": y, "sd": sd}

    def conditional(u):
        design = np.stack([np.ones((len(u), count)), -1 / (t + u)], axis=-1)
        height, *others = linear_given(design, y, sd, [10, 1500], [3, 500])
        return height - 0.5 * ((u[:, 0] + 40) / 15) ** 2, *others

    outer, inner = {"c": (-150.0, 70.0)}, {"a": (), "b": ()}
    return nested(_vapour, outer, inner, data, conditional, 3001)


def _heat(theta, data):
    z = jnp.exp(theta["log_heat"]) / data["t"]
    mean = jnp.exp(theta["log_top"]) * (0.5 * z / jnp.sinh(0.5 * z)) ** 2
    prior = around(theta, log_heat=(data["guess"], 0.7), log_top=(3.2, 0.5))
    return misfit(data, mean) + prior


def cold_solid(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Heat that a cold solid takes up (Einstein), seen far below its scale."""
    guess, sd = np.log(rng.uniform(100, 400)), rng.uniform(0.5, 2)
    t = np.exp(guess) * np.linspace(0.12, rng.uniform(0.25, 0.8), 5)
    z = 0.5 * np.exp(guess) / t
    y = 25 * (z / np.sinh(z)) ** 2 + sd * rng.normal(size=5)
    data = {"t": t, "y": y, "sd": sd, "guess": guess + 0.4 * rng.normal()}
    box = {"log_heat": (data["guess"] - 4, data["guess"] + 4), "log_top": (0.0, 6.0)}
    return latticed(_heat, box, data, 401)
