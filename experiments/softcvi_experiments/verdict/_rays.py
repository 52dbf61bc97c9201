"""Light, particles and stars: turns that come back, and curves that look alike."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi.targets import UnconstrainedSpace, interval
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _normal(u, mean, sd):
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def _oscillation(theta, data):
    depth, turns = jax.nn.sigmoid(theta["depth"]), jnp.exp(theta["log_gap"])
    lost = depth * jnp.sin(turns * data["way"]) ** 2
    lost = jnp.clip(lost, 1e-9, 1 - 1e-6)
    rows = data["y"] * jnp.log1p(-lost) + (data["n"] - data["y"]) * jnp.log(lost)
    return jnp.sum(rows) + around(theta, depth=(0, 1.5), log_gap=(0, 1))


def oscillation(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Neutrinos that are lost and come back on their way: several gaps of mass fit."""
    count, n = (3, 5, 10)[seed % 3], 12
    way, turns = np.exp(rng.uniform(-1.5, 1, count)), np.exp(0.6 * rng.normal())
    lost = rng.uniform(0.4, 1) * np.sin(turns * way) ** 2
    data = {"way": way, "n": np.full(count, n), "y": rng.binomial(n, 1 - lost)}
    box = {"depth": (-10.0, 10.0), "log_gap": (-6.7, 6.7)}
    return latticed(_oscillation, box, data, 801)


def _interference(theta, data):
    z = data["energy"] - theta["place"]
    size = jnp.exp(theta["log_size"]) / (z**2 + 0.25)
    # An amplitude of one everywhere, and that of a resonance of width one.
    real = 1 + size * (z * jnp.cos(theta["turn"]) + 0.5 * jnp.sin(theta["turn"]))
    other = size * (z * jnp.sin(theta["turn"]) - 0.5 * jnp.cos(theta["turn"]))
    prior = around(theta, place=(0, 1), log_size=(-0.5, 0.7), turn=(0, 4))
    return _misfit(data, real**2 + other**2) + prior


def interference(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A resonance on a background: its phase is known but for full turns."""
    count, place, turn = (5, 9, 20)[seed % 3], rng.normal(), rng.uniform(-3, 3)
    energy = np.linspace(-4, 4, count)
    wave = 1 + np.exp(1j * turn) * rng.uniform(0.4, 1.2) / (energy - place + 0.5j)
    sd = rng.uniform(0.2, 0.5)
    y = np.abs(wave) ** 2 + sd * rng.normal(size=count)
    # One turn is enough for the likelihood; the prior weighs all the others.
    turns = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    copies = turns[:, None] + 2 * np.pi * np.arange(-6, 6)
    weights = np.exp(-0.5 * (copies / 4) ** 2)
    sums = np.stack([(weights * copies**k).sum(axis=1) for k in range(3)], axis=1)

    def conditional(u):
        part = np.exp(u[:, 1:]) / (energy - u[:, :1] + 0.5j)
        flat = 1 + np.abs(part) ** 2 - y
        fits = []
        for turn in turns:
            rest = flat + 2 * (np.cos(turn) * part.real - np.sin(turn) * part.imag)
            fits.append(-0.5 * np.sum((rest / sd) ** 2, axis=1))
        rows = np.stack(fits, axis=1)
        top = rows.max(axis=1)
        total, first, second = (np.exp(rows - top[:, None]) @ sums).T
        mean = (first / total)[:, None]
        height = top + np.log(total) + _normal(u, [0, -0.5], [1, 0.7])
        return height, mean, (second / total)[:, None] - mean**2

    data = {"energy": energy, "y": y, "sd": sd}
    outer = {"place": (-6.7, 6.7), "log_size": (-5.2, 4.2)}
    return nested(_interference, outer, {"turn": ()}, data, conditional, 81)


def _filter(theta, data):
    light = theta["bright"] * jnp.cos(data["angle"] - theta["turn"]) ** 2
    prior = around(theta, turn=(0, 3), bright=(2, 1), dark=(0, 1))
    return _misfit(data, theta["dark"] + light) + prior


def polariser(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Light behind a turned filter: the angle up to half turns (Malus)."""
    count, sd = (4, 8, 30)[seed % 3], rng.uniform(0.3, 0.8)
    angle = rng.uniform(0, np.pi, count)
    y = rng.normal() + rng.uniform(1, 3) * np.cos(angle - rng.uniform(-3, 3)) ** 2
    y += sd * rng.normal(size=count)
    data = {"angle": angle, "y": y, "sd": sd}

    def conditional(u):
        light = np.cos(angle - u) ** 2
        design = np.stack([light, np.ones_like(light)], axis=2)
        height, *rest = linear_given(design, y, sd, [2, 0], [1, 1])
        return height + _normal(u, 0, 3), *rest

    outer, inner = {"turn": (-20.0, 20.0)}, {"bright": (), "dark": ()}
    return nested(_filter, outer, inner, data, conditional, 4001)


def _bloch(theta, data):
    spin = theta["spin"]
    inside = jnp.sum(spin**2) < 1
    safe = jnp.where(inside, spin, 0.0)
    rows = data["up"] * jnp.log1p(safe) + data["down"] * jnp.log1p(-safe)
    return jnp.where(inside, jnp.sum(rows), -jnp.inf)


def bloch(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A state of a quantum bit, nearly pure: inside a ball, most of it at its skin."""
    n, way = (5, 20, 100)[seed % 3], rng.normal(size=3)
    spin = rng.uniform(0.85, 1) * way / np.linalg.norm(way)
    up = rng.binomial(n, (1 + spin) / 2)
    box = {"spin": (np.full(3, -1.0), np.full(3, 1.0))}
    return latticed(_bloch, box, {"up": up, "down": n - up}, 121)


def _furnace(theta, data):
    glow = 1 / jnp.expm1(data["colour"] * jnp.exp(-theta["log_heat"]))
    prior = around(theta, log_heat=(0, 1), size=(1, 1))
    return _misfit(data, theta["size"] * glow) + prior


def furnace(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Heat of a furnace by a few colours: small and hot, or large and cooler."""
    count = (2, 3, 8)[seed % 3]
    colour, heat = rng.uniform(0.5, 3, count), np.exp(0.3 * rng.normal())
    y = rng.uniform(0.5, 2) / np.expm1(colour / heat)
    sd = 0.15 * y.max()
    data = {"colour": colour, "y": y + sd * rng.normal(size=count), "sd": sd}

    def conditional(u):
        with np.errstate(over="ignore"):
            glow = 1 / np.expm1(colour * np.exp(-u))
        height, *rest = linear_given(glow[:, :, None], data["y"], sd, 1, 1)
        return height + _normal(u, 0, 1), *rest

    outer = {"log_heat": (-4.5, 6.7)}
    return nested(_furnace, outer, {"size": ()}, data, conditional, 4001)


def _dark(theta, data):
    matter, push = theta["matter"], theta["push"]
    z, weights = data["nodes"], data["weights"]
    rate = matter * (1 + z) ** 3 + (1 - matter) * (1 + z) ** (3 * (1 + push))
    way = jnp.sum(weights / jnp.sqrt(rate), axis=1)
    rest = data["y"] - theta["level"] - 5 / jnp.log(10.0) * jnp.log(way)
    prior = around(theta, push=(-1, 0.5), level=(0, 1))
    return -0.5 * jnp.sum((rest / data["sd"]) ** 2) + prior


def dark_energy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Bright stars at great distances: matter and what pushes it apart."""
    count, sd = (6, 20, 60)[seed % 3], 0.15
    far = rng.uniform(0.05, 1.5, count)
    x, w = np.polynomial.legendre.leggauss(12)
    nodes, weights = far[:, None] * (x + 1) / 2, far[:, None] * w / 2
    way = np.sum(weights / np.sqrt(0.3 * (1 + nodes) ** 3 + 0.7), axis=1)
    y = rng.normal() + 5 * np.log10(way) + sd * rng.normal(size=count)
    data = {"nodes": nodes, "weights": weights, "y": y, "sd": sd}

    def conditional(u):
        matter, push = u.T[:, :, None, None]
        rate = matter * (1 + nodes) ** 3 + (1 - matter) * (1 + nodes) ** (3 + 3 * push)
        way = np.sum(weights / np.sqrt(rate), axis=2)
        design = np.ones((len(u), count, 1))
        height, *rest = linear_given(design, y - 5 * np.log10(way), sd, 0, 1)
        return height - 0.5 * ((u[:, 1] + 1) / 0.5) ** 2, *rest

    space = UnconstrainedSpace({"matter": interval(0.0, 1.0)})
    outer = {"matter": (1e-4, 1 - 1e-4), "push": (-4.4, 2.4)}
    return nested(_dark, outer, {"level": ()}, data, conditional, 121, space)


def _companion(theta, data):
    tilt = theta["tilt"]
    inside = (tilt > 0) & (tilt < 1)
    safe = jnp.where(inside, tilt, 0.5)
    seen = theta["log_mass"] + 0.5 * jnp.log1p(-(safe**2))
    fit = -0.5 * ((data["y"] - seen) / data["sd"]) ** 2
    return jnp.where(inside, fit + around(theta, log_mass=(0, 1.5)), -jnp.inf)


def companion(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Mass of a planet of which only that times the sine of its tilt was seen."""
    data = {"y": rng.normal(), "sd": (0.3, 0.1, 0.03)[seed % 3]}
    box = {"log_mass": (-10.0, 10.0), "tilt": (0.0, 1.0)}
    return latticed(_companion, box, data, 1201)


def _absorbed(theta, data):
    log_mean = theta["level"] - theta["slope"] * data["log_e"]
    log_mean -= jnp.exp(theta["log_gas"]) * data["shade"]
    rows = data["y"] * log_mean - jnp.exp(log_mean)
    return jnp.sum(rows) + around(theta, level=(2, 2), slope=(2, 1), log_gas=(0, 1.5))


def absorbed(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """X rays behind gas: a steep source behind much of it looks like a flat one."""
    count = (6, 12, 40)[seed % 3]
    log_e = np.linspace(-0.7, 2, count)
    shade = np.exp(-2.7 * log_e)
    mean = np.exp(rng.uniform(1.5, 3) - rng.uniform(1.4, 2.2) * log_e - 0.6 * shade)
    data = {"log_e": log_e, "shade": shade, "y": rng.poisson(mean)}
    box = {"level": (-8.0, 12.0), "slope": (-5.0, 9.0), "log_gas": (-10.0, 8.0)}
    return latticed(_absorbed, box, data, 91)


def _spectrum(theta, data):
    peaks = jnp.exp(-0.5 * ((data["x"][:, None] - data["at"]) / 0.06) ** 2)
    mean = peaks @ jnp.exp(theta["log_peak"]) + jnp.exp(theta["log_base"])
    rows = data["y"] * jnp.log(mean) - mean
    return jnp.sum(rows) + around(theta, log_peak=(1, 1.5), log_base=(0.5, 0.7))


def faint_lines(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Heights of spectral lines over a floor, some of which may not be there."""
    lines = (2, 4, 8)[seed % 3]
    x, at = np.linspace(0, 1, 30), (np.arange(lines) + 0.5) / lines
    peaks = np.exp(-0.5 * ((x[:, None] - at) / 0.06) ** 2)
    height = rng.exponential(6, lines) * (rng.uniform(size=lines) < 0.7)
    y = rng.poisson(peaks @ height + 1.5)
    data = {"x": x, "at": at, "y": y}
    shapes, middle = {"log_peak": (lines,), "log_base": ()}, {"log_peak": 1.0}
    return weighed(rng, _spectrum, shapes, data, {}, middle)
