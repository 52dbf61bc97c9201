"""Measurements that several states of the world would have given as well."""

import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi.targets import UnconstrainedSpace, interval
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _normal(u, mean, sd):
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def _two_link_arm(theta, data):
    one, two = theta["joint"]
    reach = data["arm"] * jnp.exp(1j * jnp.stack([one, one + two]))
    hand = jnp.sum(reach)
    return _misfit(data, jnp.stack([hand.real, hand.imag]))


def two_link_arm(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two joints of an arm whose hand was seen: the elbow may be on either side."""
    arm, joint = rng.uniform(0.8, 1.3, 2), rng.uniform([-1.2, 0.6], [1.2, 2.2])
    sd = (0.3, 0.15, 0.07)[seed % 3]
    hand = arm @ np.exp(1j * np.cumsum(joint))
    y = np.array([hand.real, hand.imag]) + sd * rng.normal(size=2)
    corner = np.full(2, np.pi)
    space = UnconstrainedSpace({"joint": interval(-np.pi, np.pi)})
    data = {"arm": arm, "y": y, "sd": sd}
    return latticed(_two_link_arm, {"joint": (-corner, corner)}, data, 1201, space)


def _cannon(theta, data):
    angle, log_speed = theta["angle"], theta["log_speed"]
    reach = jnp.exp(2 * log_speed) * jnp.sin(2 * angle) / 9.81
    prior = around(theta, angle=(0.8, 0.5), log_speed=(data["m"], 0.05))
    return _misfit(data, reach) + prior


def cannon(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How high a gun was aimed, by where its shells fell: flat or steep."""
    m, angle = np.log(rng.uniform(50, 500)), rng.uniform(0.35, 0.65)
    reach = np.exp(2 * m) * np.sin(2 * angle) / 9.81
    sd = reach * (0.08, 0.03, 0.01)[seed % 3]
    y = reach + sd * rng.normal(size=3)
    box = {"angle": (-2.5, 4.5), "log_speed": (m - 0.5, m + 0.5)}
    return latticed(_cannon, box, {"m": m, "y": y, "sd": sd}, 1201)


def _lens_on_bench(theta, data):
    place, focus = theta["place"], theta["focus"]
    rest = (place * (data["long"] - place) / data["long"] - focus) / data["sd"]
    prior = around(theta, place=(data["guess"], 0.2 * data["long"]))
    return prior - 0.5 * rest**2 + around(theta, focus=(data["y"], data["fine"]))


def lens_on_bench(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Where a lens stood between a lamp and its sharp image: two places would do."""
    long = 10 ** rng.uniform(0, 3)
    y, sd = long * rng.uniform(0.12, 0.22), long * (0.03, 0.01, 0.005)[seed % 3]
    data = {"long": long, "sd": sd, "y": y, "fine": sd * rng.uniform(0.5, 2)}
    data["guess"] = long * rng.uniform(0.3, 0.7)
    # Given the place, what is left of the focal length is normal.
    total = sd**2 + data["fine"] ** 2

    def conditional(u):
        found = u * (long - u) / long
        share = data["fine"] ** 2 / total
        height = _normal(u, data["guess"], 0.2 * long) - 0.5 * (
            (found[:, 0] - y) ** 2 / total
        )
        return height, y + share * (found - y), np.full_like(u, share * sd**2)

    outer = {"place": (np.array(-1.0 * long), np.array(2.0 * long))}
    return nested(_lens_on_bench, outer, {"focus": ()}, data, conditional, 4001)


def _conics(theta, data):
    x, y = theta["x"] / data["unit"]
    seen = jnp.stack([x**2 + data["wide"] * y**2, x * y])
    return _misfit(data, seen) - 0.005 * (x**2 + y**2)


def conics(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An ellipse and a hyperbola that were seen with noise: where they cross."""
    x, y, wide = *rng.uniform(0.5, 3, 2), rng.uniform(0.3, 3)
    sd, unit = (1.0, 0.5, 0.25)[seed % 3], 10 ** rng.uniform(-3, 3)
    seen = np.array([x**2 + wide * y**2, x * y]) + sd * rng.normal(size=2)
    corner = np.full(2, 12 * unit)
    data = {"y": seen, "wide": wide, "sd": sd, "unit": unit}
    return latticed(_conics, {"x": (-corner, corner)}, data, 1001)


def _power_sums(theta, data):
    x = theta["x"]
    sums = jnp.stack([jnp.sum(x**k) for k in range(1, x.size + 1)])
    return _misfit(data, sums) - 0.5 * jnp.sum((x / 3) ** 2)


def power_sums(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Numbers of which the sum, that of squares and that of cubes were seen."""
    size, points = ((2, 1001), (3, 141))[seed % 2]
    x = rng.normal(0, 1.2, size)
    k = np.arange(1, size + 1)
    sd = rng.uniform(0.5, 1.0, size) * 1.5 ** (k - 1)
    y = np.array([np.sum(x**p) for p in k]) + sd * rng.normal(size=size)
    corner = np.full(size, 9.0)
    return latticed(_power_sums, {"x": (-corner, corner)}, {"y": y, "sd": sd}, points)


def _blind_deconvolution(theta, data):
    one, two = theta["filter"]
    signal = jnp.concatenate([jnp.zeros(2), theta["signal"], jnp.zeros(2)])
    seen = signal[2:] + one * signal[1:-1] + two * signal[:-2]
    prior = around(theta, filter=(0, 1), signal=(0, data["size"]))
    return _misfit(data, seen) + prior


def blind_deconvolution(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A signal seen through a filter that is unknown, too."""
    count, size = (3, 6, 14)[seed % 3], 10 ** rng.uniform(-2, 2)
    truth, filter_ = rng.normal(0, size, count), np.append(1.0, rng.normal(size=2))
    sd = size * rng.uniform(0.2, 0.6)
    y = np.convolve(truth, filter_) + sd * rng.normal(size=count + 2)
    data = {"y": y, "sd": sd, "size": size}

    def conditional(u):
        taps = np.concatenate([np.ones((len(u), 1)), u], axis=1)
        design = np.zeros((len(u), count + 2, count))
        for lag in range(3):
            design[:, np.arange(count) + lag, np.arange(count)] = taps[:, lag, None]
        height, mean, variance = linear_given(design, y, sd, 0.0, size)
        return height + _normal(u, 0, 1), mean, variance

    outer = {"filter": (np.full(2, -7.5), np.full(2, 7.5))}
    inner = {"signal": (count,)}
    return nested(_blind_deconvolution, outer, inner, data, conditional, 161)


def _two_neurons(theta, data):
    hidden = jnp.tanh(data["x"][:, None] * theta["into"])
    prior = around(theta, into=(0, data["steep"]), out=(0, 2))
    return _misfit(data, hidden @ theta["out"]) + prior


def two_neurons(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A network of two hidden units that may change signs, and places."""
    unit = 10 ** rng.uniform(-2, 2)
    x = unit * rng.normal(size=(3, 8, 30)[seed % 3])
    sd, steep = rng.uniform(0.2, 0.6), 2 / unit
    y = np.tanh(np.outer(x, rng.normal(0, steep, 2))) @ rng.normal(0, 2, 2)
    y = y + sd * rng.normal(size=x.size)
    data = {"x": x, "y": y, "sd": sd, "steep": steep}

    def conditional(u):
        design = np.tanh(x[None, :, None] * u[:, None, :])
        height, mean, variance = linear_given(design, y, sd, 0.0, 2.0)
        return height + _normal(u, 0, steep), mean, variance

    outer = {"into": (np.full(2, -7 * steep), np.full(2, 7 * steep))}
    return nested(_two_neurons, outer, {"out": (2,)}, data, conditional, 301)


def _hidden_bump(theta, data):
    width = jnp.exp(theta["log_width"])
    bump = jnp.exp(-0.5 * ((data["x"] - theta["place"]) / width) ** 2)
    long, high = data["long"], data["high"]
    prior = around(theta, place=(0, long), log_width=(data["m"], 0.7))
    prior += around(theta, height=(0, 3 * high), floor=(0, high))
    return _misfit(data, theta["floor"] + theta["height"] * bump) + prior


def hidden_bump(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A bump or a dip somewhere along a line that was measured at few places."""
    count, long = (5, 9, 20)[seed % 3], 10 ** rng.uniform(-2, 3)
    high, m = 10 ** rng.uniform(-2, 3), np.log(0.25 * long)
    x, sd = np.sort(rng.normal(0, long, count)), high * rng.uniform(0.3, 0.7)
    bump = np.exp(-0.5 * ((x - 0.7 * long * rng.normal()) / (0.3 * long)) ** 2)
    y = high * rng.normal() + 2.5 * high * bump + sd * rng.normal(size=count)
    data = {"x": x, "y": y, "sd": sd, "long": long, "high": high, "m": m}

    def conditional(u):
        bump = np.exp(-0.5 * ((x - u[:, :1]) / np.exp(u[:, 1:])) ** 2)
        design = np.stack([bump, np.ones_like(bump)], axis=2)
        prior_sd = np.array([3 * high, high])
        height, mean, variance = linear_given(design, y, sd, 0.0, prior_sd)
        return height + _normal(u, np.array([0, m]), [long, 0.7]), mean, variance

    outer = {"place": (-7.0 * long, 7.0 * long), "log_width": (m - 5, m + 5)}
    inner = {"height": (), "floor": ()}
    return nested(_hidden_bump, outer, inner, data, conditional, 401)


def _vernier(theta, data):
    way, offset = theta["way"], theta["offset"]
    phase = 2 * jnp.pi * way / data["waves"] + offset
    prior = around(theta, way=(data["guess"], data["vague"]), offset=(0, 0.5))
    return data["force"] @ jnp.cos(data["seen"] - phase) + prior


def vernier(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A distance by the phases of three wavelengths: only some of its steps fit."""
    unit = 10 ** rng.uniform(-3, 3)
    waves = unit * np.array([1.0, rng.uniform(1.15, 1.4), rng.uniform(1.6, 2.2)])
    way, vague = unit * rng.uniform(20, 60), unit * (0.8, 1.5, 2.5)[seed % 3]
    force = rng.uniform(2, 8, 3)
    seen = 2 * np.pi * way / waves + rng.vonmises(0, force)
    data = {"waves": waves, "force": force, "seen": seen, "vague": vague}
    data["guess"] = guess = way + vague * rng.normal()
    box = {"way": (guess - 8 * vague, guess + 8 * vague), "offset": (-4.0, 4.0)}
    return latticed(_vernier, box, data, 1201)


def _rods(theta, data):
    depth = theta["depth"]
    steps = jnp.concatenate([depth[:1], depth[1:] - depth[:-1]])
    prior = -0.5 * jnp.sum((steps - data["lean"]) ** 2 / data["vague"] ** 2)
    return _misfit(data, steps**2) + prior


def rods(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Joints of rods of known length in a photograph: each points here or away."""
    count, unit = (1, 3, 6)[seed % 3], 10 ** rng.uniform(-2, 2)
    steps = rng.normal(0, 1, count)
    sd, vague, lean = (
        rng.uniform(0.2, 0.7, count),
        rng.uniform(1, 2),
        rng.normal(0, 0.3),
    )
    y = steps**2 + sd * rng.normal(size=count)
    z = np.linspace(-8, 8, 20_001)[:, None]
    heights = -0.5 * ((y - z**2) / sd) ** 2 - 0.5 * ((z - lean) / vague) ** 2
    weights = special.softmax(heights, axis=0)
    mean = np.sum(weights * z, axis=0)
    variance = np.sum(weights * (z - mean) ** 2, axis=0)
    data = {"y": unit**2 * y, "sd": unit**2 * sd, "vague": np.array(unit * vague)}
    data["lean"] = np.array(unit * lean)
    right = {"depth": unit * np.cumsum(mean)}, {"depth": unit**2 * np.cumsum(variance)}
    return from_moments(density(_rods, {"depth": (count,)}, data), *right, "quadrature")
