"""Waves, breaks and walks in time: normal given few numbers, which are on a lattice."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested, split
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around


def misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _tides(theta, data):
    rest = data["y"] - data["x"] @ theta["beta"]
    echo, scale = jnp.tanh(theta["echo"]), jnp.exp(-theta["log_sd"])
    moves = (rest[1:] - echo * rest[:-1]) * scale
    first = rest[0] ** 2 * (1 - echo**2) * scale**2
    fit = 0.5 * jnp.log1p(-(echo**2)) - rest.size * theta["log_sd"]
    prior = around(theta, beta=(0, data["wide"]), echo=(0.5, 0.5))
    prior += around(theta, log_sd=(data["log_unit"], 1))
    return fit - 0.5 * (jnp.sum(moves**2) + first) + prior


def tides(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Known periods with unknown heights, seen with noise that lasts."""
    waves, count = ((1, 10), (3, 30), (8, 80))[seed % 3]
    unit, t = 10 ** rng.uniform(-3, 3), np.arange(count)
    turns = np.outer(t, rng.uniform(0.3, 2.5, waves))
    x = np.column_stack([np.ones(count), np.cos(turns), np.sin(turns)])
    noise, echo = rng.normal(size=count), rng.uniform(0.2, 0.9)
    for i in range(1, count):
        noise[i] += echo * noise[i - 1]
    y = unit * (x @ rng.normal(0, 2, x.shape[1]) + noise)
    data = {"x": x, "y": y, "wide": 5 * unit, "log_unit": np.log(unit)}

    def conditional(u):
        echo = np.tanh(u[:, :1])
        root = np.sqrt(1 - echo**2)
        design = x[1:] - echo[:, :, None] * x[:-1]
        design = np.concatenate([root[:, :, None] * x[:1], design], axis=1)
        rows = np.concatenate([root * y[0], y[1:] - echo * y[:-1]], axis=1)
        height, *rest = linear_given(design, rows, np.exp(u[:, 1]), 0, 5 * unit)
        height += np.log(root[:, 0]) - 0.5 * ((u[:, 0] - 0.5) / 0.5) ** 2
        return height - 0.5 * (u[:, 1] - data["log_unit"]) ** 2, *rest

    middle = data["log_unit"]
    outer = {"echo": (-3.0, 4.0), "log_sd": (middle - 5.5, middle + 6)}
    return nested(_tides, outer, {"beta": (x.shape[1],)}, data, conditional, 61)


def _two_pitches(theta, data):
    turns = data["t"][:, None] * jnp.exp(theta["pitch"])
    waves = jnp.cos(turns) @ theta["even"] + jnp.sin(turns) @ theta["odd"]
    return misfit(data, waves) + around(theta, pitch=(0, 0.5), even=(0, 1), odd=(0, 1))


def two_pitches(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two tones at once, which are the same two when they change their names."""
    count = (8, 12, 20)[seed % 3]
    t, sd = np.sort(rng.uniform(-3, 3, count)), rng.uniform(0.4, 0.8)
    pitch, parts = 0.5 * rng.normal(size=2), rng.normal(size=(2, 2))
    turns = t[:, None] * np.exp(pitch)
    y = np.cos(turns) @ parts[0] + np.sin(turns) @ parts[1]
    data = {"t": t, "y": y + sd * rng.normal(size=count), "sd": sd}

    def conditional(u):
        turns = t[:, None] * np.exp(u)[:, None, :]
        design = np.concatenate([np.cos(turns), np.sin(turns)], axis=2)
        height, *rest = linear_given(design, data["y"], sd, 0, 1)
        return height - 0.5 * np.sum((u / 0.5) ** 2, axis=1), *rest

    outer = {"pitch": (np.full(2, -3.4), np.full(2, 3.4))}
    inner = {"even": (2,), "odd": (2,)}
    return nested(_two_pitches, outer, inner, data, conditional, 121)


def _ringing(theta, data):
    fade = jnp.exp(-jnp.exp(theta["log_fade"]) * data["t"])
    turns = jnp.exp(theta["pitch"]) * data["t"]
    wave = fade * (theta["even"] * jnp.cos(turns) + theta["odd"] * jnp.sin(turns))
    prior = around(theta, log_fade=(-1, 0.7), pitch=(1, 0.5), even=(0, 2), odd=(0, 2))
    return misfit(data, wave) + prior


def ringing(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A bell that fades: pitch, fading and two heights, from few readings."""
    count = (4, 8, 20)[seed % 3]
    t, sd = np.sort(rng.uniform(0, 5, count)), rng.uniform(0.2, 0.5)
    fade, pitch = np.exp(rng.normal([-1, 1], 0.3))
    waves = np.stack([np.cos(pitch * t), np.sin(pitch * t)])
    y = np.exp(-fade * t) * (rng.normal(0, 2, 2) @ waves)
    data = {"t": t, "y": y + sd * rng.normal(size=count), "sd": sd}

    def conditional(u):
        fade, turns = np.exp(-np.exp(u[:, :1]) * t), np.exp(u[:, 1:]) * t
        design = np.stack([fade * np.cos(turns), fade * np.sin(turns)], axis=2)
        height, *rest = linear_given(design, data["y"], sd, 0, 2)
        height -= 0.5 * ((u[:, 0] + 1) / 0.7) ** 2
        return height - 0.5 * ((u[:, 1] - 1) / 0.5) ** 2, *rest

    outer = {"log_fade": (-6.0, 4.0), "pitch": (-2.5, 4.5)}
    return nested(_ringing, outer, {"even": (), "odd": ()}, data, conditional, 201)


def _bent_line(theta, data):
    over = jnp.maximum(data["t"] - theta["place"], 0.0)
    mean = theta["level"] + theta["before"] * data["t"] + theta["more"] * over
    wide = data["wide"]
    prior = around(theta, place=(0.5, 0.3), level=(0, wide), before=(0, wide))
    return misfit(data, mean) + prior + around(theta, more=(0, wide))


def bent_line(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A trend that changes somewhere, perhaps before the first year or not at all."""
    count = (4, 9, 30)[seed % 3]
    unit, t = 10 ** rng.uniform(-3, 3), np.sort(rng.uniform(0, 1, count))
    mean = rng.normal() + rng.normal(0, 2) * t
    mean += rng.normal(0, 4) * np.maximum(t - rng.uniform(0.2, 0.9), 0)
    sd = unit * rng.uniform(0.1, 0.4)
    y = unit * mean + sd * rng.normal(size=count)
    data = {"t": t, "y": y, "sd": sd, "wide": 3 * unit}

    def conditional(u):
        over = np.maximum(t - u, 0)
        design = np.stack([1 + 0 * over, t + 0 * over, over], axis=2)
        height, *rest = linear_given(design, y, sd, 0, 3 * unit)
        return height - 0.5 * ((u[:, 0] - 0.5) / 0.3) ** 2, *rest

    outer, inner = {"place": (-2.0, 3.0)}, {"level": (), "before": (), "more": ()}
    return nested(_bent_line, outer, inner, data, conditional, 2001)


def _two_steps(theta, data):
    after = data["t"][:, None] > theta["when"]
    mean = theta["base"] + after @ theta["step"]
    prior = around(theta, when=(0.5, 0.4), base=(0, 2), step=(0, 2))
    return misfit(data, mean) + prior


def two_steps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two jumps without names, by a density that jumps at each reading."""
    count = (5, 8, 14)[seed % 3]
    t, sd = np.sort(rng.uniform(0, 1, count)), rng.uniform(0.4, 0.8)
    mean = rng.normal() + (t[:, None] > rng.uniform(0.1, 0.9, 2)) @ rng.normal(0, 2, 2)
    y = mean + sd * rng.normal(size=count)
    # The likelihood is flat between readings: the sum over all pairs of gaps is exact.
    edges = np.concatenate([[-np.inf], t, [np.inf]])
    gap = stats.truncnorm((edges[:-1] - 0.5) / 0.4, (edges[1:] - 0.5) / 0.4, 0.5, 0.4)
    mass = np.diff(stats.norm.cdf(edges, 0.5, 0.4))
    one, two = (part.ravel() for part in np.indices((count + 1, count + 1)))
    after = np.arange(count)[:, None] >= np.stack([one, two], axis=1)[:, None, :]
    design = np.concatenate([np.ones((len(one), count, 1)), after], axis=2)
    height, mean, variance = linear_given(design, y, sd, 0, 2)
    weights = special.softmax(height + np.log(mass[one] * mass[two]))
    means, variances = gap.mean(), gap.var()
    mean = np.column_stack([means[one], means[two], mean])
    variance = np.column_stack([variances[one], variances[two], variance])
    middle = weights @ mean
    spread = weights @ (variance + (mean - middle) ** 2)
    data, shapes = {"t": t, "y": y, "sd": sd}, {"when": (2,), "base": (), "step": (2,)}
    right = split(middle, shapes), split(spread, shapes)
    return from_moments(density(_two_steps, shapes, data), *right, "closed form")


def _slow_switch(theta, data):
    over = jax.nn.sigmoid(jnp.exp(theta["log_steep"]) * (data["t"] - theta["place"]))
    mean = theta["low"] * (1 - over) + theta["high"] * over
    prior = around(theta, place=(0, 1), log_steep=(1, 1), low=(0, 3), high=(0, 3))
    return misfit(data, mean) + prior


def slow_switch(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """From one level to another, at once or slowly (a smooth transition)."""
    count = (4, 8, 30)[seed % 3]
    t, sd = np.sort(rng.uniform(-2, 2, count)), rng.uniform(0.3, 0.8)
    over = special.expit(np.exp(rng.normal(1, 0.7)) * (t - rng.normal()))
    y = rng.normal(0, 2) * (1 - over) + rng.normal(0, 2) * over
    data = {"t": t, "y": y + sd * rng.normal(size=count), "sd": sd}

    def conditional(u):
        over = special.expit(np.exp(u[:, 1:]) * (t - u[:, :1]))
        design = np.stack([1 - over, over], axis=2)
        height, *rest = linear_given(design, data["y"], sd, 0, 3)
        return height - 0.5 * (u[:, 0] ** 2 + (u[:, 1] - 1) ** 2), *rest

    outer = {"place": (-6.5, 6.5), "log_steep": (-5.5, 7.5)}
    return nested(_slow_switch, outer, {"low": (), "high": ()}, data, conditional, 201)


def _unknown_delay(theta, data):
    rest = data["y"] - theta["level"] - theta["gain"] * data["x"]
    fits = -0.5 * jnp.sum((rest / data["sd"]) ** 2, axis=1)
    return logsumexp(fits) + around(theta, level=(0, 3), gain=(0, 2))


def unknown_delay(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """What rain does to a river after some days, nobody knows how many."""
    count = (5, 8, 15)[seed % 3]
    rain, late = rng.normal(size=count + 6), rng.integers(0, 7)
    x = np.stack([rain[6 - k : 6 - k + count] for k in range(7)])
    sd = rng.uniform(0.5, 1)
    y = rng.normal() + rng.normal(0, 1.5) * x[late] + sd * rng.normal(size=count)
    box = {"level": (-18.0, 18.0), "gain": (-14.0, 14.0)}
    return latticed(_unknown_delay, box, {"x": x, "y": y, "sd": sd}, 401)


def _own_errors(theta, data):
    echo, error = jnp.tanh(theta["echo"]), jnp.tanh(theta["error"])

    def step(before, pair):
        now = pair[1] - echo * pair[0] - error * before
        return now, now

    pairs = jnp.stack([data["y"][:-1], data["y"][1:]], axis=1)
    first = jnp.zeros((), theta["echo"].dtype)
    _, rest = jax.lax.scan(step, first, pairs)
    return -0.5 * jnp.sum(rest**2) + around(theta, echo=(0, 1), error=(0, 1))


def own_errors(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Echoes of values and of errors, which all but cancel each other."""
    count, echo = (10, 25, 60)[seed % 3], rng.uniform(-0.8, 0.8)
    error, e = -echo + rng.uniform(-0.3, 0.3), rng.normal(size=count)
    y = [e[0]]
    for i in range(1, count):
        y.append(echo * y[-1] + e[i] + error * e[i - 1])
    box = {"echo": (-6.7, 6.7), "error": (-6.7, 6.7)}
    return latticed(_own_errors, box, {"y": np.array(y)}, 201)


def _survivors(theta, data):
    k = data["k"]
    stay = k * jax.nn.log_sigmoid(theta["stay"])
    stay += (data["before"] - k) * jax.nn.log_sigmoid(-theta["stay"])
    new = (data["now"] - k) * theta["log_new"] - jnp.exp(theta["log_new"])
    rows = logsumexp(data["ways"] + stay + new, axis=1)
    return jnp.sum(rows) + around(theta, stay=(0, 1.5), log_new=(0, 1.5))


def survivors(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of guests of whom some stay and new ones come, not told apart."""
    count, stay, new = (5, 15, 40)[seed % 3], rng.uniform(0.2, 0.8), rng.uniform(0.5, 3)
    y = [rng.poisson(new / (1 - stay))]
    for _ in range(count):
        y.append(rng.binomial(y[-1], stay) + rng.poisson(new))
    before, now = np.array(y[:-1])[:, None], np.array(y[1:])[:, None]
    k = np.arange(max(y) + 1)[None, :]
    possible = (k <= before) & (k <= now)
    ways = np.log(np.where(possible, special.binom(before, np.minimum(k, before)), 1.0))
    ways = np.where(possible, ways - special.gammaln(np.maximum(now - k, 0) + 1), -1e6)
    k = np.where(possible, k, 0)
    data = {"before": before, "now": now, "k": k, "ways": ways}
    box = {"stay": (-9.0, 9.0), "log_new": (-9.5, 6.0)}
    return latticed(_survivors, box, data, 201)


def _feedback(theta, data):
    base, pull = jnp.exp(theta["log_base"]), jax.nn.sigmoid(theta["pull"])
    keep = jax.nn.sigmoid(theta["keep"]) * (1 - pull)

    def step(rate, pair):
        rate = base + pull * pair[0] + keep * rate
        return rate, pair[1] * jnp.log(rate) - rate

    y = data["y"]
    begin = jnp.mean(y).astype(base.dtype)
    _, rows = jax.lax.scan(step, begin, jnp.stack([y[:-1], y[1:]], axis=1))
    return jnp.sum(rows) + around(theta, log_base=(0, 1), pull=(-1, 1), keep=(0, 1))


def feedback(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts whose rate follows the last count and the last rate."""
    count, rate, y = (12, 25, 50)[seed % 3], 3.0, [3]
    pull, keep = rng.uniform(0.1, 0.5), rng.uniform(0.1, 0.5)
    for _ in range(count):
        rate = 0.8 + pull * y[-1] + keep * rate
        y.append(rng.poisson(rate))
    box = {"log_base": (-7.0, 5.0), "pull": (-8.0, 6.0), "keep": (-7.0, 7.0)}
    return latticed(_feedback, box, {"y": np.array(y)}, 51)


def _three_moods(theta, data):
    stay = data["stay"]
    fits = -0.5 * (data["y"][:, None] - theta["level"]) ** 2

    def step(chance, fit):
        top = jnp.max(chance)
        total = jnp.sum(jnp.exp(chance - top))
        mass = stay * jnp.exp(chance - top) + (1 - stay) / 3 * total
        return jnp.log(mass) + top + fit, None

    last, _ = jax.lax.scan(step, fits[0], fits[1:])
    return logsumexp(last) + around(theta, level=(0, 4))


def three_moods(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Readings of a system with three states whose levels have no names."""
    count, stay = (6, 8, 10)[seed % 3], rng.uniform(0.5, 0.8)
    level, state = rng.normal(0, 3.5, 3), [0]
    for _ in range(count - 1):
        other = int(rng.integers(0, 3))
        state.append(state[-1] if rng.uniform() < stay else other)
    y = level[state] + rng.normal(size=count)
    box = {"level": (np.full(3, -27.0), np.full(3, 27.0))}
    return latticed(_three_moods, box, {"y": y, "stay": stay}, 75)
