"""Curves of chemistry and pharmacology that are linear in some of their parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior


def _normal(value, mean, sd):
    return -0.5 * jnp.sum(((value - mean) / sd) ** 2)


def _two_exponentials(theta, data):
    parts = jnp.exp(-jnp.exp(theta["log_rate"]) * data["t"][:, None])
    fit = _normal(data["y"], parts @ theta["amount"], data["noise"])
    amount = _normal(theta["amount"], 0.0, data["amount_sd"])
    return fit + amount + _normal(theta["log_rate"], 0.0, 1.0)


def two_exponentials(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A sum of two decays, which can change their roles."""
    unit = 10 ** rng.uniform(-2, 4)
    t, noise = np.linspace(0.1, 5, 15), unit * rng.uniform(0.02, 0.1)
    rates = np.array([rng.uniform(0.15, 0.5), rng.uniform(1.5, 5)])
    y = np.exp(-t[:, None] * rates) @ (unit * rng.uniform(0.7, 2, 2))
    data = {
        "t": t,
        "y": y + noise * rng.normal(size=t.size),
        "noise": noise,
        "amount_sd": 2 * unit,
    }

    def conditional(x):
        design = np.exp(-np.exp(x)[:, None, :] * t[:, None])
        height, *rest = linear_given(design, data["y"], noise, 0.0, 2 * unit)
        return height - 0.5 * np.sum(x**2, axis=1), *rest

    outer = {"log_rate": (np.full(2, -8.0), np.full(2, 8.0))}
    return nested(_two_exponentials, outer, {"amount": (2,)}, data, conditional, 401)


def _log_bateman(xp, entry, leave, t):
    """Log of the concentration after a dose by mouth, but for the volume."""
    gap = entry - leave
    # Equal rates have a limit that the ratio does not.
    gap = xp.where(xp.abs(gap) < 1e-5, 1e-5, gap)
    whole = (xp.exp(-leave * t) - xp.exp(-entry * t)) * entry / gap
    return xp.log(xp.maximum(whole, 1e-30))


def _one_compartment(theta, data):
    entry, leave = jnp.exp(theta["entry"]), jnp.exp(theta["leave"])
    curve = _log_bateman(jnp, entry, leave, data["t"]) - theta["log_volume"]
    fit = _normal(data["y"], curve, data["noise"])
    prior = _normal(theta["entry"], 0.5, 1.0) + _normal(theta["leave"], -0.5, 1.0)
    return fit + prior + _normal(theta["log_volume"], data["log_volume"], 1.0)


def one_compartment(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A dose by mouth: which of two rates is the slower is not quite known."""
    t, noise = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]), rng.uniform(0.1, 0.25)
    rates = rng.uniform(0.9, 2.5), rng.uniform(0.15, 0.6)
    volume = rng.uniform(-3, 8)
    y = _log_bateman(np, *rates, t) - volume + noise * rng.normal(size=t.size)
    guess = volume + 0.5 * rng.normal()
    data = {"t": t, "y": y, "noise": noise, "log_volume": guess}

    def conditional(x):
        entry, leave = np.exp(x.T)[:, :, None]
        curve = _log_bateman(np, entry, leave, t)
        # Given the rates, only the level is unknown, a mean with a normal prior.
        rest = curve - y
        precision = t.size / noise**2 + 1.0
        mean = guess + (rest - guess).sum(axis=1) / noise**2 / precision
        height = 0.5 * precision * (mean - guess) ** 2
        height -= 0.5 * np.sum((rest - guess) ** 2, axis=1) / noise**2
        height -= 0.5 * ((x[:, 0] - 0.5) ** 2 + (x[:, 1] + 0.5) ** 2)
        return height, mean[:, None], np.full((len(x), 1), 1 / precision)

    outer = {"entry": (-7.0, 7.0), "leave": (-8.0, 6.0)}
    inner = {"log_volume": ()}
    return nested(_one_compartment, outer, inner, data, conditional, 401)


def _hill(theta, data):
    rise = jax.nn.sigmoid(theta["slope"] * (data["x"] - theta["middle"]))
    fit = theta["ends"][0] * (1 - rise) + theta["ends"][1] * rise
    rows = _normal(data["y"], fit, data["noise"])
    ends = _normal(theta["ends"], data["ends_mean"], data["ends_sd"])
    return (
        rows + ends + _normal(theta["slope"], 0.0, 2.0) + _normal(theta["middle"], 0, 1)
    )


def hill(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A dose response with two ends: it rises, or falls from the other end."""
    unit = 10 ** rng.uniform(-3, 3)
    x, noise = np.linspace(-3, 3, 9), unit * rng.uniform(0.1, 0.4)
    place = unit * rng.normal(0, 10)
    rise = 1 / (1 + np.exp(-rng.uniform(1, 3) * (x - 0.7 * rng.normal())))
    y = place + 2 * unit * rise + noise * rng.normal(size=x.size)
    data = {"x": x, "y": y, "noise": noise, "ends_mean": place, "ends_sd": 4 * unit}

    def conditional(u):
        rise = 1 / (1 + np.exp(-np.clip(u[:, :1] * (x - u[:, 1:]), -500, 500)))
        design = np.stack([1 - rise, rise], axis=2)
        height, *rest = linear_given(design, y, noise, place, 4 * unit)
        height -= 0.5 * ((u[:, 0] / 2) ** 2 + u[:, 1] ** 2)
        return height, *rest

    outer = {"slope": (-14.0, 14.0), "middle": (-7.0, 7.0)}
    return nested(_hill, outer, {"ends": (2,)}, data, conditional, 301)


def _arrhenius(theta, data):
    log_sd = theta["log_sd"]
    fit = theta["log_factor"] - theta["energy"] * data["cold"]
    z = (data["y"] - fit) * jnp.exp(-log_sd)
    rows = jnp.sum(-0.5 * z**2 - log_sd)
    prior = _normal(theta["log_factor"], 20.0, 10.0)
    prior += _normal(theta["energy"], 6e4, 3e4)
    return rows + prior + _normal(log_sd, -2.0, 1.0)


def arrhenius(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Energy and factor of a reaction from its rates at similar temperatures."""
    count = (5, 12)[seed % 2]
    cold = 1 / (8.314 * np.linspace(290, rng.uniform(310, 360), count))
    y = rng.normal(20, 5) - rng.uniform(4e4, 9e4) * cold
    y += np.exp(rng.uniform(-3, -1)) * rng.normal(size=count)
    design = np.column_stack([np.ones(count), -cold])

    def conditional(u):
        every = np.broadcast_to(design, (len(u), *design.shape))
        prior = np.array([20.0, 6e4]), np.array([10.0, 3e4])
        height, *rest = linear_given(every, y, np.exp(u[:, 0]), *prior)
        return height - 0.5 * (u[:, 0] + 2) ** 2, *rest

    inner = {"log_factor": (), "energy": ()}
    data = {"cold": cold, "y": y}
    return nested(_arrhenius, {"log_sd": (-9.0, 5.0)}, inner, data, conditional, 801)


def _step(theta, data):
    later = jax.nn.sigmoid((data["t"] - theta["when"]) / data["quick"])
    fit = theta["before"] + theta["change"] * later
    rows = _normal(data["y"], fit, data["noise"])
    levels = _normal(jnp.stack([theta["before"], theta["change"]]), 0.0, 5.0)
    return rows + levels + _normal(theta["when"], 5.0, 4.0)


def step(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A level that changes at an unknown time, quickly beside the data's distance."""
    t, noise = np.sort(rng.uniform(0, 10, 14)), rng.uniform(0.5, 1.0)
    when, quick = rng.uniform(2, 8), rng.uniform(0.1, 0.25)
    levels = rng.normal(0, 2), rng.choice([-1, 1]) * rng.uniform(0.8, 2.0)
    y = levels[0] + levels[1] * (t > when) + noise * rng.normal(size=t.size)
    data = {"t": t, "y": y, "noise": noise, "quick": quick}

    def conditional(u):
        late = 1 / (1 + np.exp(-np.clip((t - u) / quick, -500, 500)))
        design = np.stack([np.ones_like(late), late], axis=2)
        height, *rest = linear_given(design, y, noise, 0.0, 5.0)
        return height - 0.5 * ((u[:, 0] - 5) / 4) ** 2, *rest

    inner = {"before": (), "change": ()}
    return nested(_step, {"when": (-30.0, 40.0)}, inner, data, conditional, 4001)
