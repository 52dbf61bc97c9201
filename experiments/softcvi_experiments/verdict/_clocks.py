"""Series with lags, regimes, periods and events: linear parts exact, lattices else."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior


def _lags(theta, data):
    z = (data["y"] - data["x"] @ theta["lag"]) * jnp.exp(-theta["log_sd"])
    prior = jnp.sum(((theta["lag"] - data["mean"]) / data["wide"]) ** 2)
    hyper = (theta["log_sd"] - data["log_unit"]) ** 2
    return -0.5 * (jnp.sum(z**2) + prior + hyper) - z.size * theta["log_sd"]


def several_lags(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A stochastic cycle: a constant and two to twelve lags of a raw series."""
    lags, count = ((2, 25), (5, 50), (12, 60))[seed % 3]
    unit = 10 ** rng.uniform(-3, 3)
    state = list(rng.normal(size=2))
    for _ in range(count + lags):
        state.append(1.4 * state[-1] - 0.7 * state[-2] + rng.normal())
    series = unit * (np.array(state[2:]) + rng.normal(0, 10))
    y = series[lags:]
    columns = [series[lags - k : -k] for k in range(1, lags + 1)]
    x = np.column_stack([np.ones(count), *columns])
    mean, wide = np.zeros(lags + 1), np.append(30 * unit, np.full(lags, 1.0))
    data = {"x": x, "y": y, "mean": mean, "wide": wide, "log_unit": np.log(unit)}

    def conditional(u):
        design = np.broadcast_to(x, (len(u), *x.shape))
        height, *rest = linear_given(design, y, np.exp(u[:, 0]), mean, wide)
        return height - 0.5 * (u[:, 0] - np.log(unit)) ** 2, *rest

    outer = {"log_sd": (np.log(unit) - 4, np.log(unit) + 4)}
    return nested(_lags, outer, {"lag": (lags + 1,)}, data, conditional, 201)


def _calm_and_storm(theta, data):
    logs = jnp.stack([theta["calm"], theta["storm"]])
    z = data["y"][:, None] * jnp.exp(-logs)
    rows = jnp.exp(-0.5 * z**2 - logs + data["log_unit"])
    keep = jax.nn.sigmoid(theta["keep"])

    def day(state, row):
        chance = (keep * state + (1 - keep) * state[::-1]) * row + 1e-30
        total = jnp.sum(chance)
        return chance / total, jnp.log(total)

    _, heights = jax.lax.scan(day, jnp.full(2, 0.5, rows.dtype), rows)
    prior = jnp.sum((logs - data["log_unit"]) ** 2) + ((theta["keep"] - 2) / 1.0) ** 2
    return jnp.sum(heights) - 0.5 * prior


def calm_and_storm(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Returns of two regimes of noise without names, and how long they last."""
    count, unit = (20, 45)[seed % 2], 10 ** rng.uniform(-3, 2)
    state = np.cumsum(rng.uniform(size=count) < 0.12) % 2
    y = unit * np.array([0.5, rng.uniform(1.5, 3)])[state] * rng.normal(size=count)
    middle = np.log(unit)
    box = {
        "calm": (middle - 5.5, middle + 5.0),
        "storm": (middle - 5.5, middle + 5.0),
        "keep": (-4.5, 8.0),
    }
    return latticed(_calm_and_storm, box, {"y": y, "log_unit": middle}, 61)


def _threshold(theta, data):
    high = data["before"] > theta["border"]
    mean = jnp.where(
        high[:, None], theta["level"][1:] + 0 * data["x"], theta["level"][:1]
    )[:, 0]
    mean += jnp.where(high, theta["slope"][1], theta["slope"][0]) * data["before"]
    prior = jnp.sum(theta["level"] ** 2) / 9 + jnp.sum(theta["slope"] ** 2)
    prior += theta["border"] ** 2
    return -0.5 * (jnp.sum((data["y"] - mean) ** 2) + prior)


def threshold(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A series that obeys another line above a border: a density with steps."""
    count = (15, 40)[seed % 2]
    state = [rng.normal()]
    for _ in range(count):
        up = state[-1] > 0.3
        state.append((-1.2 if up else 1.2) + 0.4 * state[-1] + rng.normal())
    y, before = np.array(state[1:]), np.array(state[:-1])
    data = {"y": y, "before": before, "x": np.zeros((count, 1))}

    def conditional(u):
        high = (before > u[:, :1]).astype(float)
        parts = [1 - high, high, (1 - high) * before, high * before]
        design = np.stack(parts, axis=2)
        height, *rest = linear_given(design, y, 1.0, 0.0, np.array([3.0, 3.0, 1, 1]))
        return height - 0.5 * u[:, 0] ** 2, *rest

    inner = {"level": (2,), "slope": (2,)}
    return nested(_threshold, {"border": (-7.0, 7.0)}, inner, data, conditional, 8001)


def _radial_velocity(theta, data):
    turn = 2 * jnp.pi * data["t"] * jnp.exp(-theta["log_period"])
    wave = theta["wave"]
    curve = wave[0] + wave[1] * jnp.cos(turn) + wave[2] * jnp.sin(turn)
    prior = jnp.sum((wave / data["wide"]) ** 2)
    prior += ((theta["log_period"] - data["log_period"]) / 0.5) ** 2
    return -0.5 * (jnp.sum(((data["y"] - curve) / data["noise"]) ** 2) + prior)


def radial_velocity(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A star pulled by a planet, seen in few nights: several periods fit."""
    count, noise = (8, 14)[seed % 2], rng.uniform(1, 3)
    t = np.sort(rng.uniform(0, rng.uniform(20, 40), count))
    period = rng.uniform(6, 15)
    y = rng.normal(0, 5) + rng.uniform(2, 4) * noise * np.cos(
        2 * np.pi * t / period + rng.uniform(0, 6)
    )
    y += noise * rng.normal(size=count)
    wide = np.array([20.0, 8.0, 8.0])
    data = {"t": t, "y": y, "noise": noise, "wide": wide, "log_period": np.log(9.0)}

    def conditional(u):
        turn = 2 * np.pi * t * np.exp(-u)
        design = np.stack([np.ones_like(turn), np.cos(turn), np.sin(turn)], axis=2)
        height, *rest = linear_given(design, y, noise, 0.0, wide)
        return height - 0.5 * ((u[:, 0] - np.log(9.0)) / 0.5) ** 2, *rest

    outer = {"log_period": (np.log(9.0) - 3.3, np.log(9.0) + 3.3)}
    return nested(_radial_velocity, outer, {"wave": (3,)}, data, conditional, 9001)


def _self_exciting(theta, data):
    base, share, decay = (jnp.exp(theta[name]) for name in ("base", "share", "decay"))
    ahead = jnp.maximum(data["t"][:, None] - data["t"], 0.0)
    before = data["t"][:, None] > data["t"]
    shock = jnp.where(before, jnp.exp(-decay * ahead), 0.0).sum(axis=1)
    rows = jnp.log(base + share * decay * shock)
    rest = -jnp.expm1(-decay * (data["end"] - data["t"]))
    total = base * data["end"] + share * jnp.sum(rest)
    prior = (theta["base"] + 1) ** 2 + (theta["share"] + 1) ** 2 + theta["decay"] ** 2
    return jnp.sum(rows) - total - 0.5 * prior


def self_exciting(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shocks that cause further shocks: how many, and how soon."""
    end = (12.0, 30.0)[seed % 2]
    parents = list(rng.uniform(0, end, rng.poisson(0.5 * end) + 1))
    times = []
    while parents:
        t = parents.pop()
        times.append(t)
        later = t + rng.exponential(0.7, rng.poisson(0.45))
        parents += [s for s in later if s < end]
    t = np.sort(times)[:40]
    box = {"base": (-7.0, 4.0), "share": (-8.0, 4.0), "decay": (-6.0, 6.0)}
    return latticed(_self_exciting, box, {"t": t, "end": end}, 41)


def _reverting(theta, data):
    echo = jnp.exp(-jnp.exp(theta["log_rate"]) * data["gap"])
    log_sd = theta["log_sd"]
    y = (data["y"] - theta["mean"]) * jnp.exp(-log_sd)
    left = 1 - echo**2 + 1e-6
    z = (y[1:] - echo * y[:-1]) ** 2 / left
    fit = -0.5 * (jnp.sum(z) + jnp.sum(jnp.log(left)) + y[0] ** 2) - y.size * log_sd
    prior = (theta["log_rate"] - data["guess"]) ** 2 + (log_sd - data["log_unit"]) ** 2
    return (
        fit - 0.5 * prior - 0.5 * ((theta["mean"] - data["place"]) / data["wide"]) ** 2
    )


def reverting(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A quantity that returns to its mean, read at uneven times."""
    count, unit, time = (8, 30)[seed % 2], 10 ** rng.uniform(-3, 3), 10 ** rng.normal()
    gap = time * rng.exponential(size=count - 1)
    state = [rng.normal()]
    for echo in np.exp(-rng.uniform(0.2, 1.5) * gap / time):
        state.append(echo * state[-1] + np.sqrt(1 - echo**2) * rng.normal())
    place = unit * rng.normal(0, 10)
    y = place + unit * np.array(state)
    guess, log_unit = -np.log(time), np.log(unit)
    data = {"y": y, "gap": gap, "guess": guess, "log_unit": log_unit}
    data |= {"place": place + unit * rng.normal(), "wide": 5 * unit}

    def conditional(u):
        echo = np.exp(-np.exp(u[:, :1]) * gap)
        left = np.sqrt(1 - echo**2 + 1e-6)
        # Differences of neighbours, in units of their spread.
        first = np.ones((len(u), 1))
        design = np.concatenate([first, (1 - echo) / left], axis=1)[:, :, None]
        rest = y - place
        rows = np.concatenate(
            [rest[0] * first, (rest[1:] - echo * rest[:-1]) / left], 1
        )
        prior = data["place"] - place, 5 * unit
        height, mean, variance = linear_given(design, rows, np.exp(u[:, 1]), *prior)
        height -= np.sum(np.log(left), axis=1)
        height -= 0.5 * ((u[:, 0] - guess) ** 2 + (u[:, 1] - log_unit) ** 2)
        return height, place + mean, variance

    outer = {
        "log_rate": (guess - 7, guess + 7),
        "log_sd": (log_unit - 5, log_unit + 6),
    }
    return nested(_reverting, outer, {"mean": ()}, data, conditional, 201)
