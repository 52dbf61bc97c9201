"""Rates, drugs and materials: curves of chemistry and physiology with few readings."""

import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._lattice import latticed, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def box(centre: dict, reach: float) -> dict:
    return {name: (value - reach, value + reach) for name, value in centre.items()}


def _infusion(theta, data):
    rate, volume = jnp.exp(theta["log_rate"]), jnp.exp(theta["log_volume"])
    on = jnp.minimum(data["t"], data["stop"])
    rise = -jnp.expm1(-rate * on) * jnp.exp(-rate * (data["t"] - on))
    prior = around(theta, log_rate=(data["guess"], 1), log_volume=(1, 1))
    return misfit(data, rise / (rate * volume * data["unit"])) + prior


def infusion(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A drip that is stopped: loss and volume from few levels of the blood."""
    unit, volume = 10 ** rng.uniform(-2, 2), np.exp(rng.normal(1, 0.5))
    rate, stop = np.exp(rng.normal(0, 0.7)) / unit, 1.5 * unit
    t = unit * np.array([0.5, 1.4, 2.5, 4.0])[: (2, 3, 4)[seed % 3]]
    on = np.minimum(t, stop)
    y = -np.expm1(-rate * on) * np.exp(-rate * (t - on)) / (rate * volume * unit)
    sd = 0.25 * y.max()
    y = y + sd * rng.normal(size=y.size)
    data = {"t": t, "y": y, "sd": sd, "stop": stop, "unit": unit}
    data["guess"] = -np.log(unit)
    centre = {"log_rate": data["guess"], "log_volume": 1.0}
    return latticed(_infusion, box(centre, 7.0), data, 301)


def _two_compartments(theta, data):
    out, across, back = (jnp.exp(theta[n]) for n in ("log_out", "log_to", "log_from"))
    total = out + across + back
    root = jnp.sqrt(total**2 - 4 * out * back)
    quick, slow = (total + root) / 2, 2 * out * back / (total + root)
    level = (quick - back) * jnp.exp(-quick * data["t"])
    level += (back - slow) * jnp.exp(-slow * data["t"])
    rest = data["log_y"] - jnp.log(level / root) + theta["log_volume"]
    prior = around(theta, log_out=(-1, 0.7), log_to=(-1, 0.7), log_from=(-1, 0.7))
    return (
        -0.5 * jnp.sum((rest / 0.15) ** 2)
        + prior
        + around(theta, log_volume=(data["log_unit"], 1))
    )


def two_compartments(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A drug that goes to tissue and comes back, with all rates unknown."""
    log_unit, t = rng.normal(0, 4), np.array([0.2, 0.5, 1, 2, 4, 8, 12, 20])
    out, across, back = np.exp(rng.normal(-1, 0.5, 3))
    flow = np.array([[-out - across, back], [across, -back]])
    roots, ways = np.linalg.eig(flow)
    share = np.linalg.solve(ways, [1.0, 0.0])
    level = np.real(np.exp(np.outer(t, roots)) @ (ways[0] * share))
    log_y = np.log(level) - log_unit + 0.15 * rng.normal(size=8)
    data = {"t": t, "log_y": log_y, "log_unit": log_unit}
    names = ("log_out", "log_to", "log_from")
    middle = dict.fromkeys(names, -1.0) | {"log_volume": log_unit}
    return weighed(rng, _two_compartments, dict.fromkeys(middle, ()), data, {}, middle)


def _inhibitor(theta, data):
    half = theta["log_half"] + jnp.log1p(data["i"] * jnp.exp(-theta["log_block"]))
    mean = jnp.exp(theta["log_top"]) * data["s"] / (data["s"] + jnp.exp(half))
    prior = around(theta, log_top=(0, 1), log_half=(0, 1.5), log_block=(0, 1.5))
    return misfit(data, mean) + prior


def inhibitor(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An enzyme, its food and a rival of the food (competitive inhibition)."""
    s, i = np.tile([0.3, 1.0, 3.0], 3), np.repeat([0.0, 0.5, 2.0], 3)
    top, half, block = np.exp(rng.normal(0, [0.3, 0.6, 0.6]))
    sd = rng.uniform(0.05, 0.12)
    y = top * s / (s + half * (1 + i / block)) + sd * rng.normal(size=9)
    shapes = dict.fromkeys(("log_top", "log_half", "log_block"), ())
    return weighed(rng, _inhibitor, shapes, {"s": s, "i": i, "y": y, "sd": sd}, {})


def _too_much(theta, data):
    s = data["s"]
    low, high = jnp.exp(theta["log_half"]), jnp.exp(theta["log_poison"])
    mean = jnp.exp(theta["log_top"]) * s / (low + s + s**2 / high)
    prior = around(theta, log_top=(0, 1), log_half=(0, 1.5), log_poison=(1, 1.5))
    return misfit(data, mean) + prior


def too_much(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Growth on a food that is a poison where there is much of it (Haldane)."""
    s = np.array([0.1, 0.5, 1, 2, 5, 10])
    top, low, high = np.exp(rng.normal([0.3, -0.3, 1.2], 0.5))
    sd = rng.uniform(0.04, 0.1)
    y = top * s / (low + s + s**2 / high) + sd * rng.normal(size=6)
    box = {"log_top": (-4.5, 4.5), "log_half": (-7.0, 7.0), "log_poison": (-6.0, 8.0)}
    return latticed(_too_much, box, {"s": s, "y": y, "sd": sd}, 81)


def _layers(theta, data):
    c, x = jnp.exp(theta["log_c"]), data["x"]
    mean = jnp.exp(theta["log_one"]) * c * x / ((1 - x) * (1 + (c - 1) * x))
    prior = around(theta, log_one=(data["log_unit"], 1), log_c=(2, 1.5))
    return misfit(data, mean) + prior


def layers_of_gas(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Gas on a surface in many layers, by its pressure (Brunauer, Emmett, Teller)."""
    unit, c = 10 ** rng.uniform(-3, 3), np.exp(rng.normal(2, 1))
    x = np.array([0.05, 0.1, 0.2, 0.3])
    y = unit * c * x / ((1 - x) * (1 + (c - 1) * x))
    sd = rng.uniform(0.1, 0.3) * unit
    data = {
        "x": x,
        "y": y + sd * rng.normal(size=4),
        "sd": sd,
        "log_unit": np.log(unit),
    }
    box = {"log_one": (np.log(unit) - 7, np.log(unit) + 6), "log_c": (-9.0, 13.0)}
    return latticed(_layers, box, data, 401)


def _second_order(theta, data):
    rate, excess = jnp.exp(theta["log_rate"]), theta["excess"]
    # Both run out alike where there is no excess of one.
    small = jnp.abs(excess) < 1e-4
    safe = jnp.where(small, 1e-4, excess)
    left = safe / ((1 + safe) * jnp.exp(safe * rate * data["t"]) - 1)
    plain = 1 / (1 + rate * data["t"])
    mean = jnp.where(small, plain, left)
    return misfit(data, mean) + around(theta, log_rate=(0, 1), excess=(0.3, 0.3))


def second_order(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two substances that use each other up, one in an excess that is unknown."""
    t, rate, excess = np.array([0.5, 1, 2, 4, 8]), np.exp(0.4 * rng.normal()), 0.35
    grown = np.exp(excess * rate * t)
    sd = rng.uniform(0.02, 0.08)
    y = excess / ((1 + excess) * grown - 1) + sd * rng.normal(size=5)
    box = {"log_rate": (-5.0, 5.0), "excess": (-2.0, 2.6)}
    return latticed(_second_order, box, {"t": t, "y": y, "sd": sd}, 401)


def _oxygen(theta, data):
    rot, air = jnp.exp(theta["log_rot"]), jnp.exp(theta["log_air"])
    gap = air - rot
    # The difference of both decays over that of the rates, also where they are alike.
    half = 0.5 * gap * data["t"]
    safe = jnp.where(jnp.abs(half) < 1e-3, 1.0, half)
    ratio = jnp.where(jnp.abs(half) < 1e-3, 1 + half**2 / 6, jnp.sinh(safe) / safe)
    shared = jnp.exp(-0.5 * (rot + air) * data["t"]) * data["t"] * ratio
    mean = rot * jnp.exp(theta["log_load"]) * shared
    prior = around(theta, log_rot=(-0.5, 1), log_air=(0, 1), log_load=(1, 0.7))
    return misfit(data, mean) + prior


def oxygen(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Lack of oxygen below a sewer: rot and air, which may change their roles."""
    t = np.array([0.3, 0.8, 1.5, 3.0, 5.0])
    rot, air, load = np.exp(rng.normal([-0.5, 0.2, 1.0], 0.4))
    y = rot * load / (air - rot) * (np.exp(-rot * t) - np.exp(-air * t))
    sd = rng.uniform(0.08, 0.2)
    data = {"t": t, "y": y + sd * rng.normal(size=5), "sd": sd}
    box = {"log_rot": (-5.5, 4.5), "log_air": (-5.0, 5.0), "log_load": (-2.5, 4.5)}
    return latticed(_oxygen, box, data, 81)


def _titration(theta, data):
    k, acid = 10 ** -theta["strength"], jnp.exp(theta["log_acid"])
    h = 10 ** -data["p"]
    mean = acid * k / (k + h)
    return misfit(data, mean) + around(theta, strength=(5, 2), log_acid=(0, 1))


def titration(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How strong an acid is and how much of it there is, often in its foot only."""
    strength = rng.normal(5, 1)
    p = strength + rng.uniform(-2, 1) + np.linspace(-1, 1, 4)
    sd = rng.uniform(0.05, 0.15)
    y = special.expit((p - strength) * np.log(10)) + sd * rng.normal(size=4)
    box = {"strength": (-8.0, 18.0), "log_acid": (-6.0, 6.0)}
    return latticed(_titration, box, {"p": p, "y": y, "sd": sd}, 401)


def _shade(theta, data):
    light = data["light"] * jnp.exp(theta["log_slope"] - theta["log_top"])
    harm = data["light"] * jnp.exp(theta["log_harm"] - theta["log_top"])
    mean = jnp.exp(theta["log_top"]) * -jnp.expm1(-light) * jnp.exp(-harm)
    prior = around(theta, log_top=(1, 0.7), log_slope=(0, 1), log_harm=(-2, 1.5))
    return misfit(data, mean) + prior


def sunburnt_algae(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Algae that grow in the light and suffer from much of it (Platt)."""
    light = np.array([0.3, 1, 2, 4, 7, 10])
    top, slope, harm = np.exp(rng.normal([1.0, 0.2, -1.7], [0.3, 0.4, 0.6]))
    y = top * -np.expm1(-slope * light / top) * np.exp(-harm * light / top)
    sd = rng.uniform(0.1, 0.3)
    data = {"light": light, "y": y + sd * rng.normal(size=6), "sd": sd}
    box = {"log_top": (-2.0, 4.5), "log_slope": (-4.0, 5.5), "log_harm": (-10.0, 5.0)}
    return latticed(_shade, box, data, 81)


def _many_patients(theta, data):
    line = theta["height"][:, None] - theta["rate"][:, None] * data["t"]
    fit = -0.5 * jnp.sum(((data["log_y"] - line) / data["sd"]) ** 2)
    for name, scale in (("height", "log_height_sd"), ("rate", "log_rate_sd")):
        z = (theta[name] - theta["mean_" + name]) * jnp.exp(-theta[scale])
        fit -= 0.5 * jnp.sum(z**2) + z.size * theta[scale]
    fit += around(theta, log_height_sd=(-1, 0.7), log_rate_sd=(-2, 0.7))
    return fit + around(theta, mean_height=(0, 3), mean_rate=(0.5, 0.5))


def many_patients(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Log levels of a drug in patients who lose it at rates of their own."""
    count, t, sd = (3, 8, 20)[seed % 3], np.array([0.5, 2.0, 5.0]), 0.2
    height = rng.normal() + rng.uniform(0.2, 0.6) * rng.normal(size=count)
    rate = 0.5 + rng.uniform(0.05, 0.2) * rng.normal(size=count)
    log_y = height[:, None] - rate[:, None] * t + sd * rng.normal(size=(count, 3))
    line = np.stack([np.ones(3), -t], axis=1)
    precision, shift = line.T @ line / sd**2, log_y @ line / sd**2
    found, error = np.linalg.solve(precision, shift.T).T, np.linalg.inv(precision)
    first, wide = np.array([0.0, 0.5]), np.array([3.0, 0.5])

    def conditional(u):
        own = np.exp(2 * u)[:, :, None] * np.eye(2)
        # What was found of each patient has this spread around the means.
        inverse = np.linalg.inv(own + error)
        top = np.linalg.inv(np.diag(wide**-2) + count * inverse)
        pull = (inverse @ (found - first).sum(axis=0))[:, :, None]
        mean = (top @ pull)[:, :, 0]
        height = 0.5 * np.sum(mean * pull[:, :, 0], axis=1)
        height += 0.5 * np.linalg.slogdet(top)[1]
        height += 0.5 * count * np.linalg.slogdet(inverse)[1]
        rest = found - first
        height -= 0.5 * np.einsum("ki,nij,kj->n", rest, inverse, rest)
        mean = mean + first
        gain = own @ inverse
        each = mean[:, None] + np.einsum("nij,nkj->nki", gain, found - mean[:, None])
        rest = np.eye(2) - gain
        spread = rest @ own + rest @ top @ np.swapaxes(rest, 1, 2)
        height -= 0.5 * np.sum(((u - [-1, -2]) / 0.7) ** 2, axis=1)
        spreads = np.diagonal(spread, axis1=1, axis2=2)
        means = [mean, each[:, :, 0], each[:, :, 1]]
        alike = np.ones((1, count))
        tops = np.diagonal(top, axis1=1, axis2=2)
        parts = [tops, spreads[:, :1] * alike, spreads[:, 1:] * alike]
        return height, np.concatenate(means, 1), np.concatenate(parts, 1)

    data = {"t": t, "log_y": log_y, "sd": sd}
    outer = {"log_height_sd": (-6.0, 4.0), "log_rate_sd": (-7.0, 3.0)}
    inner = {"mean_height": (), "mean_rate": (), "height": (count,), "rate": (count,)}
    return nested(_many_patients, outer, inner, data, conditional, 61)


def _antagonists(theta, data):
    ten = jnp.log(10.0)
    shift = theta["half"] + jnp.log1p(10 ** (theta["block"] + data["other"])) / ten
    steep = jnp.exp(theta["log_steep"]) * ten
    linear = steep * (data["dose"] - shift)
    mean = jnp.exp(theta["log_top"]) / (1 + jnp.exp(-linear))
    prior = around(theta, half=(-6, 1), block=(7, 1), log_steep=(0, 0.4))
    return misfit(data, mean) + prior + around(theta, log_top=(4.5, 0.3))


def antagonists(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A response that a second drug moves to higher doses (Gaddum and Schild)."""
    dose, other = np.meshgrid(np.linspace(-8, -4, 5), [-12.0, -7.0, -6.0])
    half, block, steep = rng.normal([-6.3, 7, 0], [0.4, 0.4, 0.2])
    shift = half + np.log10(1 + 10 ** (block + other))
    y = 90 * special.expit(np.exp(steep) * np.log(10) * (dose - shift))
    data = {"dose": dose, "other": other, "sd": 8.0}
    data["y"] = y + 8 * rng.normal(size=y.shape)
    shapes = dict.fromkeys(("half", "block", "log_steep", "log_top"), ())
    middle = {"half": -6.0, "block": 7.0, "log_top": 4.5}
    return weighed(rng, _antagonists, shapes, data, {}, middle)


def _many_targets(theta, data):
    hits = jnp.exp(theta["log_rate"]) * data["t"]
    log_share = jnp.exp(theta["log_many"]) * jnp.log1p(-jnp.exp(-hits))
    rows = data["y"] * log_share
    rows += (data["n"] - data["y"]) * jnp.log(-jnp.expm1(log_share))
    return jnp.sum(rows) + around(theta, log_rate=(0, 1), log_many=(1, 1))


def many_targets(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Cells that die when all of several targets are hit by radiation."""
    t, n = np.array([0.5, 1.0, 2.0, 3.0, 4.0]), np.full(5, 20)
    rate, many = np.exp(0.3 * rng.normal()), rng.integers(1, 6)
    y = rng.binomial(n, (-np.expm1(-rate * t)) ** many)
    box = {"log_rate": (-6.0, 4.0), "log_many": (-6.0, 7.0)}
    return latticed(_many_targets, box, {"t": t, "n": n, "y": y}, 401)
