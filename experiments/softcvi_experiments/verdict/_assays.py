"""Curves of the laboratory with closed solutions: linear parts exact, lattices else."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior


def _misfit(data, curve, log_sd):
    z = (data["y"] - curve) * jnp.exp(-log_sd)
    return -0.5 * jnp.sum(z**2) - z.size * log_sd - 0.5 * (log_sd - data["log_sd"]) ** 2


def _normal(value, mean, sd):
    return -0.5 * jnp.sum(((value - mean) / sd) ** 2)


def _emax(theta, data):
    rise = data["dose"] / (data["dose"] + jnp.exp(theta["log_half"]))
    curve = theta["level"][0] + theta["level"][1] * rise
    prior = _normal(theta["level"], data["guess"], data["wide"])
    prior += _normal(theta["log_half"], data["log_dose"], 2.0)
    return _misfit(data, curve, theta["log_sd"]) + prior


def emax(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A response over a baseline whose plateau the doses may not reach."""
    unit, each = 10 ** rng.uniform(-2, 3), (1, 3)[seed % 2]
    top = 10 ** rng.uniform(-2, 3)
    dose = np.repeat(top * np.array([0.0, 0.05, 0.15, 0.4, 1.0]), each)
    half = top * 10 ** rng.uniform(-1, 0.3)
    y = unit * (rng.normal(0, 3) + 10 * dose / (dose + half))
    y += unit * rng.uniform(0.7, 2) * rng.normal(size=dose.size)
    data = {
        "dose": dose,
        "y": y,
        "log_dose": np.log(top) - 1.0,
        "guess": np.array([y[0], 5 * unit]),
        "wide": np.array([10 * unit, 15 * unit]),
        "log_sd": np.log(unit),
    }

    def conditional(u):
        rise = dose / (dose + np.exp(u[:, :1]))
        design = np.stack([np.ones_like(rise), rise], axis=2)
        prior = data["guess"], data["wide"]
        height, *rest = linear_given(design, y, np.exp(u[:, 1]), *prior)
        height -= 0.5 * ((u[:, 0] - data["log_dose"]) / 2) ** 2
        return height - 0.5 * (u[:, 1] - data["log_sd"]) ** 2, *rest

    outer = {
        "log_half": (data["log_dose"] - 14, data["log_dose"] + 14),
        "log_sd": (data["log_sd"] - 4, data["log_sd"] + 5),
    }
    return nested(_emax, outer, {"level": (2,)}, data, conditional, 161)


def _flip_flop(theta, data):
    rates = jnp.exp(theta["log_rate"])
    gone = jnp.exp(-rates[:, None] * data["t"])
    prior = _normal(theta["amount"], 0.0, data["wide"])
    prior += _normal(theta["log_rate"], data["log_rate"], 1.2)
    curve = theta["amount"] * (gone[0] - gone[1])
    return -0.5 * jnp.sum(((data["y"] - curve) / data["noise"]) ** 2) + prior


def flip_flop(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Uptake and loss of a drug, which the data cannot tell apart."""
    unit, time = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-1, 2)
    t = time * np.array([0.2, 0.5, 1.0, 1.5, 2.5, 4.0, 6.0])
    slow, quick = rng.uniform(0.3, 0.6), rng.uniform(1.2, 3)
    y = 10 * unit * (np.exp(-slow * t / time) - np.exp(-quick * t / time))
    noise = unit * rng.uniform(0.5, 1.2)
    y += noise * rng.normal(size=t.size)
    data = {"t": t, "y": y, "noise": noise, "wide": 15 * unit}
    data["log_rate"] = -np.log(time)

    def conditional(u):
        gone = np.exp(-np.exp(u)[:, :, None] * t)
        design = (gone[:, 0] - gone[:, 1])[:, :, None]
        height, *rest = linear_given(design, y, noise, 0.0, 15 * unit)
        return height - 0.5 * np.sum(((u + np.log(time)) / 1.2) ** 2, axis=1), *rest

    middle = np.full(2, -np.log(time))
    outer = {"log_rate": (middle - 8, middle + 8)}
    return nested(_flip_flop, outer, {"amount": ()}, data, conditional, 251)


def _natural_deaths(theta, data):
    base = jax.nn.sigmoid(theta["base"])
    z = jnp.exp(theta["log_slope"]) * (data["log_dose"] - theta["half"])
    share = base + (1 - base) * jax.scipy.special.ndtr(z)
    alive = jax.nn.log_sigmoid(-theta["base"]) + jax.scipy.special.log_ndtr(-z)
    rows = data["y"] * jnp.log(share) + (data["n"] - data["y"]) * alive
    prior = _normal(theta["half"], 0.0, 2.0) + _normal(theta["base"], -2.0, 1.5)
    return jnp.sum(rows) + prior + _normal(theta["log_slope"], 0.5, 0.7)


def natural_deaths(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Insects killed by a dose, or dead of themselves."""
    log_dose = np.array([-9.0, -2.0, -1.0, 0.0, 1.0, 2.0])
    n = np.full(6, (5, 20)[seed % 2])
    z = np.clip(1.7 * (log_dose - rng.normal(0, 0.7)), -30, 30)
    base = rng.uniform(0.02, 0.25)
    share = base + (1 - base) / (1 + np.exp(-1.7 * z))
    data = {"log_dose": log_dose, "n": n, "y": rng.binomial(n, share)}
    box = {"half": (-7.0, 8.0), "log_slope": (-4.0, 4.5), "base": (-10.0, 3.0)}
    return latticed(_natural_deaths, box, data, 71)


def _bound(log_kd, ligand, total):
    # The root is written without a difference of two large numbers.
    b = total + ligand + jnp.exp(log_kd)
    return 2 * ligand / (b + jnp.sqrt(b**2 - 4 * total * ligand))


def _tight_binding(theta, data):
    share = _bound(theta["log_kd"], data["ligand"], jnp.exp(theta["log_total"]))
    curve = theta["signal"] * share
    prior = _normal(theta["log_kd"], -1.0, 2.0) + _normal(theta["log_total"], 0.0, 0.7)
    prior += _normal(theta["signal"], 0.0, data["wide"])
    return -0.5 * jnp.sum(((data["y"] - curve) / data["noise"]) ** 2) + prior


def tight_binding(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A ligand that a protein uses up: a nearly sharp bend, an unknown total."""
    unit = 10 ** rng.uniform(0, 4)
    ligand = np.linspace(0.1, 3, (6, 12)[seed % 2])
    kd, total = 10 ** rng.uniform(-2, -0.3), np.exp(0.3 * rng.normal())
    b = total + ligand + kd
    y = 10 * unit * (b - np.sqrt(b**2 - 4 * total * ligand)) / (2 * total)
    noise = unit * rng.uniform(0.5, 1.0)
    y += noise * rng.normal(size=ligand.size)
    data = {"ligand": ligand, "y": y, "noise": noise, "wide": 20 * unit}

    def conditional(u):
        kd, total = np.exp(u.T)[:, :, None]
        b = total + ligand + kd
        share = 2 * ligand / (b + np.sqrt(b**2 - 4 * total * ligand))
        height, *rest = linear_given(share[:, :, None], y, noise, 0.0, 20 * unit)
        height -= 0.5 * (((u[:, 0] + 1) / 2) ** 2 + (u[:, 1] / 0.7) ** 2)
        return height, *rest

    outer = {"log_kd": (-15.0, 8.0), "log_total": (-5.0, 5.0)}
    return nested(_tight_binding, outer, {"signal": ()}, data, conditional, 251)


def _two_sites(theta, data):
    shares = data["free"] / (data["free"] + jnp.exp(theta["log_kd"])[:, None])
    curve = theta["sites"] @ shares
    prior = _normal(theta["sites"], data["guess"], data["guess"])
    prior += _normal(theta["log_kd"], data["log_free"], 2.0)
    return -0.5 * jnp.sum(((data["y"] - curve) / data["noise"]) ** 2) + prior


def two_sites(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two kinds of binding sites without names: each mode has its mirror image."""
    unit, scale = 10 ** rng.uniform(-2, 3), 10 ** rng.uniform(-3, 3)
    free = scale * 2.0 ** np.arange(-4, (4, 7)[seed % 2])
    kd = scale * 10 ** np.array([rng.uniform(-1.2, -0.5), rng.uniform(0.3, 1)])
    sites = unit * rng.uniform(5, 12, 2)
    noise = unit * rng.uniform(0.2, 0.6)
    y = (free[:, None] / (free[:, None] + kd)) @ sites
    y += noise * rng.normal(size=free.size)
    data = {"free": free, "y": y, "noise": noise, "guess": 8 * unit}
    data["log_free"] = np.log(scale)

    def conditional(u):
        design = free[:, None] / (free[:, None] + np.exp(u)[:, None, :])
        height, *rest = linear_given(design, y, noise, 8 * unit, 8 * unit)
        return height - 0.5 * np.sum(((u - np.log(scale)) / 2) ** 2, axis=1), *rest

    middle = np.full(2, np.log(scale))
    outer = {"log_kd": (middle - 13, middle + 13)}
    return nested(_two_sites, outer, {"sites": (2,)}, data, conditional, 251)


def _decay_chain(theta, data):
    first, second = jnp.exp(theta["first"]), jnp.exp(theta["second"])
    # (exp(-a t) - exp(-b t)) / (b - a), also where the rates are equal.
    gap = jnp.abs(second - first) * data["t"]
    safe = jnp.maximum(gap, 1e-3)
    ratio = jnp.where(gap < 1e-3, 1 - gap / 2, -jnp.expm1(-safe) / safe)
    mean = jnp.exp(-jnp.minimum(first, second) * data["t"]) * data["t"] * ratio
    curve = data["amount"] * first * mean
    rows = data["y"] * jnp.log(curve + data["back"]) - curve
    prior = _normal(theta["first"], data["guess"], 1.0)
    return jnp.sum(rows) + prior + _normal(theta["second"], data["guess"], 1.0)


def decay_chain(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of a daughter that is made and decays: either rate may be quicker."""
    time, amount = 10 ** rng.uniform(-2, 2), (40.0, 300.0)[seed % 2]
    t = time * np.array([0.3, 0.8, 1.5, 3.0, 5.0])
    a, b = rng.uniform(0.3, 0.7), rng.uniform(0.9, 2.5)
    curve = amount * a * (np.exp(-a * t / time) - np.exp(-b * t / time)) / (b - a)
    y = rng.poisson(curve + 1.0)
    data = {"t": t, "y": y, "amount": amount, "back": 1.0, "guess": -np.log(time)}
    corners = -np.log(time) - 6.0, -np.log(time) + 6.0
    box = {"first": corners, "second": corners}
    return latticed(_decay_chain, box, data, 401)


def _exchange(theta, data):
    forth, back = jnp.exp(theta["forth"]), jnp.exp(theta["back"])
    final = forth / (forth + back)
    curve = final * -jnp.expm1(-(forth + back) * data["t"])
    prior = _normal(theta["forth"], data["guess"], 1.5)
    prior += _normal(theta["back"], data["guess"], 1.5)
    return _misfit(data, curve, theta["log_sd"]) + prior


def exchange(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two states that go over into one another, seen early or until the end."""
    time, end = 10 ** rng.uniform(-3, 3), (0.4, 3.0)[seed % 2]
    t = time * np.linspace(0.1, 1, 8) * end
    a, b = rng.uniform(0.5, 1.5, 2)
    y = a / (a + b) * -np.expm1(-(a + b) * t / time)
    y += rng.uniform(0.02, 0.05) * rng.normal(size=t.size)
    data = {"t": t, "y": y, "guess": -np.log(time), "log_sd": np.log(0.03)}
    middle = -np.log(time)
    box = {
        "forth": (middle - 5.0, middle + 7.0),
        "back": (middle - 10.0, middle + 8.0),
        "log_sd": (-6.5, 0.0),
    }
    return latticed(_exchange, box, data, 71)
