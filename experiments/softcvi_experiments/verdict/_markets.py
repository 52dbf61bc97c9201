"""Markets, customers, surveys and trade: what prices and answers tell."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, gammaln, log_ndtr
from scipy import special

from softcvi_experiments.verdict._coordinates import normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _misfit(data, mean):
    return -0.5 * jnp.sum(((data["y"] - mean) / data["sd"]) ** 2)


def _bends(x, library):
    """Columns of a yield curve given the log scales along the last axis (Svensson)."""
    columns = [1 + 0 * x[..., 0]]
    for k in range(x.shape[-1]):
        one = -library.expm1(-x[..., k]) / x[..., k]
        columns += [one] if k == 0 else []
        columns += [one - library.exp(-x[..., k])]
    return library.stack(columns, axis=-1)


def _yield_curve(theta, data):
    design = _bends(data["t"][:, None] * jnp.exp(-theta["log_scale"]), jnp)
    prior = around(theta, log_scale=(0.7, 1), beta=(0, 3))
    return _misfit(data, design @ theta["beta"]) + prior


def yield_curve(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rates of loans by years: bumps that may change places (Svensson)."""
    count, scales = ((5, 1), (8, 2), (20, 2))[seed % 3]
    t, sd = np.exp(np.linspace(-1.5, 3.4, count)), rng.uniform(0.05, 0.3)
    logs = rng.normal(0.7, 0.8, scales)
    beta = rng.normal([3, -1] + [0] * scales, 2)
    y = _bends(t[:, None] * np.exp(-logs), np) @ beta + sd * rng.normal(size=count)

    def conditional(u):
        design = _bends(t[:, None] * np.exp(-u[:, None, :]), np)
        height, *rest = linear_given(design, y, sd, 0, 3)
        return height + normal(u, 0.7, 1), *rest

    far = np.full(scales, 6.7)
    outer = {"log_scale": (0.7 - far, 0.7 + far)}
    data = {"t": t, "y": y, "sd": sd}
    inner = {"beta": (2 + scales,)}
    points = (1001, 161, 161)[seed % 3]
    return nested(_yield_curve, outer, inner, data, conditional, points)


def _common_trend(theta, data):
    gap = data["before"][:, 0] - theta["ratio"] * data["before"][:, 1] - theta["base"]
    moves = data["moves"] - gap[:, None] * theta["pull"]
    fit = -0.5 * jnp.sum((moves / data["sd"]) ** 2)
    return fit + around(theta, ratio=(1, 1), base=(0, 2), pull=(0, 0.5))


def common_trend(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two prices that return to a line, or do not: then the line is anywhere."""
    count, sd = (6, 20, 60)[seed % 3], rng.uniform(0.5, 1.5)
    ratio, pull = rng.normal(1, 0.5), np.array([-rng.uniform(0, 0.5), 0.1])
    x, path = rng.normal(0, 2, 2), []
    for _ in range(count + 1):
        path.append(x)
        x = x + (x[0] - ratio * x[1]) * pull + sd * rng.normal(size=2)
    seen = np.array(path)
    before, moves = seen[:-1], np.diff(seen, axis=0)

    def conditional(u):
        gap = before[:, 0] - u[:, :1] * before[:, 1] - u[:, 1:]
        precision = np.sum(gap**2, axis=1, keepdims=True) / sd**2 + 4
        shift = gap @ moves / sd**2
        height = 0.5 * np.sum(shift**2 / precision, axis=1) - np.log(precision[:, 0])
        variance = np.repeat(1 / precision, 2, axis=1)
        return height + normal(u, [1, 0], [1, 2]), shift / precision, variance

    outer = {"ratio": (-5.7, 7.7), "base": (-13.5, 13.5)}
    data = {"before": before, "moves": moves, "sd": sd}
    return nested(_common_trend, outer, {"pull": (2,)}, data, conditional, 301)


def _customers(theta, data):
    r, alpha, a, b = jnp.exp(theta["log_habit"])
    x, last, all_time = data["times"], data["last"], data["all_time"]
    start = gammaln(r + x) - gammaln(r) + r * jnp.log(alpha)
    stays = betaln(a, b + x) - betaln(a, b) - (r + x) * jnp.log(alpha + all_time)
    some = jnp.maximum(x, 1.0)
    leaves = betaln(a + 1, b + some - 1) - betaln(a, b)
    leaves = leaves - (r + x) * jnp.log(alpha + last)
    whole = jnp.where(x > 0, jnp.logaddexp(stays, leaves), stays)
    return jnp.sum(start + whole) + around(theta, log_habit=(0, 1))


def customers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How often customers buy, and when they left for good without a word (BG/NBD)."""
    count, weeks = (5, 20, 150)[seed % 3], 20.0
    rate, chance = rng.gamma(1.0, 0.5, count), rng.beta(1.0, 3.0, count)
    times, last = np.zeros(count), np.zeros(count)
    for i in range(count):
        now = rng.exponential(1 / rate[i])
        while now < weeks:
            times[i], last[i] = times[i] + 1, now
            if rng.uniform() < chance[i]:
                break
            now += rng.exponential(1 / rate[i])
    data = {"times": times, "last": last, "all_time": weeks}
    return weighed(rng, _customers, {"log_habit": (4,)}, data, {})


def _between_bounds(theta, data):
    low, high, inside = theta["low"], theta["high"], theta["inside"]
    gap = high - low
    fits = -0.5 * ((low - data["low"]) / data["sd"]) ** 2
    fits -= 0.5 * ((high - data["high"]) / data["sd"]) ** 2
    within = jnp.all((low < inside) & (inside < high))
    return jnp.where(
        within, jnp.sum(fits - jnp.log(jnp.where(gap > 0, gap, 1.0))), -jnp.inf
    )


def between_bounds(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Incomes of which two surveys give only bounds, and nothing more is ever known."""
    size, unit = (1, 3, 8)[seed % 3], 10 ** rng.uniform(-1, 4)
    low, sd = unit * rng.normal(2, 1, size), unit * rng.uniform(0.2, 1, size)
    high = low + unit * rng.uniform(0.5, 4, size)
    lows, highs, count = [], [], 400_000
    for i in range(size):
        one, other = rng.normal([low[i], high[i]], sd[i], (6 * count, 2)).T
        keep = np.flatnonzero(one < other)[:count]
        lows.append(one[keep])
        highs.append(other[keep])
    draws = {"low": np.stack(lows, axis=1), "high": np.stack(highs, axis=1)}
    share = rng.uniform(size=(count, size))
    draws["inside"] = draws["low"] + share * (draws["high"] - draws["low"])
    shapes = {"low": (size,), "high": (size,), "inside": (size,)}
    target = density(_between_bounds, shapes, {"low": low, "high": high, "sd": sd})
    return from_draws(target, draws, Moments())


def _auctions(theta, data):
    sd = jnp.exp(theta["log_sd"])
    z = (data["log_price"] - theta["mean"]) / sd
    # One who pays more, one whose price it is, the others below.
    rows = log_ndtr(-z) - 0.5 * z**2 - theta["log_sd"]
    rows += (data["bidders"] - 2) * log_ndtr(z)
    unsold = data["bidders"] * log_ndtr((data["least"] - theta["mean"]) / sd)
    fit = jnp.sum(jnp.where(data["sold"], rows, unsold))
    return fit + around(theta, mean=(data["middle"], 2), log_sd=(-0.5, 1))


def auctions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """What bidders would pay, by the second bid of each sale, if there was one."""
    sales, middle, sd = (3, 8, 40)[seed % 3], rng.normal(5, 4), rng.uniform(0.3, 1.2)
    bidders = rng.integers(2, 9, sales)
    second = [np.sort(rng.normal(middle, sd, n))[-2:] for n in bidders]
    least = middle + rng.normal(0, 0.5, sales)
    # A price below the least one is not paid; where one bid was above, none is told.
    sold = np.array(
        [pair[0] > limit for pair, limit in zip(second, least, strict=True)]
    )
    unsold = np.array(
        [pair[1] < limit for pair, limit in zip(second, least, strict=True)]
    )
    kept = sold | unsold
    kept[0] = True
    sold[0] = True
    log_price = np.array([pair[0] for pair in second])
    data = {"log_price": log_price, "bidders": bidders, "least": least, "sold": sold}
    data = {name: value[kept] for name, value in data.items()}
    centre = middle + rng.normal(0, 1)
    data["middle"] = np.asarray(centre)
    box = {"mean": (centre - 13.0, centre + 13.0), "log_sd": (-7.0, 6.0)}
    return latticed(_auctions, box, data, 401)


def _moving_crowd(theta, data):
    stay, come = jax.nn.sigmoid(theta["stay"]), jax.nn.sigmoid(theta["come"])
    n, y, j = data["inside"][:, None], data["next"][:, None], data["j"]
    m = data["all"] - n
    k = y - j
    possible = (j <= n) & (k >= 0) & (k <= m)
    left, right = jnp.where(possible, j, 0.0), jnp.where(possible, k, 0.0)
    rows = gammaln(n + 1) - gammaln(left + 1) - gammaln(jnp.maximum(n - left, 0) + 1)
    rows += left * jnp.log(stay) + (n - left) * jnp.log1p(-stay)
    rows += gammaln(m + 1) - gammaln(right + 1) - gammaln(jnp.maximum(m - right, 0) + 1)
    rows += right * jnp.log(come) + (m - right) * jnp.log1p(-come)
    total = jax.scipy.special.logsumexp(jnp.where(possible, rows, -1e9), axis=1)
    return jnp.sum(total) + around(theta, stay=(0, 1.5), come=(0, 1.5))


def moving_crowd(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Who stays with a shop and who comes to it, by how many there are each month."""
    months, everyone = ((2, 10), (5, 25), (15, 40))[seed % 3]
    stay, come = rng.uniform(0.3, 0.95), rng.uniform(0.05, 0.7)
    inside = [int(rng.integers(0, everyone + 1))]
    for _ in range(months):
        now = inside[-1]
        kept = rng.binomial(now, stay)
        inside.append(int(kept + rng.binomial(everyone - now, come)))
    data: dict = {"inside": np.array(inside[:-1]), "next": np.array(inside[1:])}
    data |= {"all": everyone, "j": np.arange(everyone + 1.0)}
    box = {"stay": (-10.0, 10.0), "come": (-10.0, 10.0)}
    return latticed(_moving_crowd, box, data, 181)


def _clicks(theta, data):
    linear = data["x"] @ theta["beta"]
    fit = jnp.sum(data["n"] * (data["y"] * linear - jax.nn.softplus(linear)))
    return fit + around(theta, beta=(0, 3))


def clicks(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Who clicked, among thousands of rows with hardly any click in them."""
    rows, size = ((1000, 3), (5000, 5), (20_000, 7))[seed % 3]
    z = (rng.uniform(size=(rows, size - 1)) < rng.uniform(0.05, 0.6, size - 1)) * 1.0
    x = np.column_stack([np.ones(rows), z])
    beta = np.r_[rng.uniform(-6, -4), rng.normal(0, 1, size - 1)]
    y = (rng.uniform(size=rows) < special.expit(x @ beta)) * 1.0
    # The answer is from one row for each kind of row.
    kinds, which = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
    n = np.bincount(np.ravel(which))
    grouped = {"x": kinds[:, :-1], "y": kinds[:, -1], "n": n}
    shapes, middle = {"beta": (size,)}, {"beta": np.r_[-5.0, np.zeros(size - 1)]}
    found = weighed(rng, _clicks, shapes, grouped, {}, middle)
    target = density(_clicks, shapes, {"x": x, "y": y, "n": np.ones(rows)})
    return RandomPosterior(
        target, found.centre, found.spread, found.measure, found.source
    )


def _trade(theta, data):
    log_mean = theta["sells"][:, None] + theta["buys"]
    log_mean -= theta["slope"] * jnp.log(data["miles"])
    rows = data["pair"] * (data["y"] * log_mean - jnp.exp(log_mean))
    return jnp.sum(rows) + around(theta, sells=(3, 2), buys=(3, 2), slope=(1, 0.5))


def trade(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Trade between countries: what each sells and buys, all but one number of both."""
    size = (2, 4, 6)[seed % 3]
    place = rng.normal(0, 800, (size, 2))
    gap = place[:, None] - place
    miles = np.sqrt(np.sum(gap**2, axis=2)) + 200.0 * np.eye(size) + 50.0
    log_mean = rng.normal(4, 0.7, (size, 1)) + rng.normal(4, 0.7, size)
    pair = 1 - np.eye(size)
    y = pair * rng.poisson(np.exp(np.minimum(log_mean - np.log(miles), 5.0)))
    data = {"miles": miles, "y": y, "pair": pair}
    shapes = {"sells": (size,), "buys": (size,), "slope": ()}
    middle = {"sells": 4.0, "buys": 4.0, "slope": 1.0}
    return weighed(rng, _trade, shapes, data, {}, middle)


def _secret_item(theta, data):
    p = jax.nn.sigmoid(theta["item"])

    def with_one(chances, p):
        up = jnp.concatenate([jnp.zeros(1, p.dtype), chances[:-1]])
        return chances * (1 - p) + up * p

    begin = jnp.zeros(data["plain"].size, p.dtype).at[0].set(1.0)
    plain = begin
    for k in range(p.size):
        plain = with_one(plain, p[k])
    whole = with_one(plain, jax.nn.sigmoid(theta["secret"]))
    rows = data["plain"][:-1] @ jnp.log(plain[:-1]) + data["whole"] @ jnp.log(whole)
    return rows + around(theta, item=(0, 1.5), secret=(0, 1.5))


def secret_item(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How many of some things people did, one of them secret in half of the lists."""
    size, people = ((1, 6), (2, 25), (2, 300))[seed % 3]
    p, secret = rng.uniform(0.2, 0.8, size), rng.uniform(0.05, 0.5)
    did = (rng.uniform(size=(2, people, size)) < p).sum(axis=2)
    did[1] += rng.uniform(size=people) < secret
    counts = [np.bincount(row, minlength=size + 2) for row in did]
    data = {"plain": counts[0], "whole": counts[1]}
    far = np.full(size, 10.0)
    box = {"item": (-far, far), "secret": (-10.0, 10.0)}
    return latticed(_secret_item, box, data, (401, 121, 121)[seed % 3])


def _heaped(theta, data):
    share = jax.nn.sigmoid(theta["share"])
    log_sd = theta["log_sd"]
    width = data["days"]

    def chance(low, high):
        low, high = ((v - theta["mean"]) * jnp.exp(-log_sd) for v in (low, high))
        # The same difference on the side where both are small.
        flip = low > 0
        one, other = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
        upper, lower = log_ndtr(other), log_ndtr(one)
        return upper + jnp.log(-jnp.expm1(jnp.minimum(lower - upper, -1e-12)))

    exact = jnp.log1p(-share) + chance(width - 0.5, width + 0.5)
    rough = jnp.log(share) + chance(width - 2.5, width + 2.5)
    rows = jnp.where(data["five"], jnp.logaddexp(exact, rough), exact)
    prior = around(theta, share=(0, 1.5), mean=(20, 10), log_sd=(1.5, 1))
    return data["n"] @ rows + prior


def heaped(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Numbers that some people round to fives: who said fifteen may mean thirteen."""
    count, mean, sd = (4, 15, 100)[seed % 3], rng.normal(20, 4), rng.uniform(1.5, 8)
    days = np.round(rng.normal(mean, sd, count))
    rough = rng.uniform(size=count) < rng.uniform(0.1, 0.8)
    days = np.where(rough, 5 * np.round(days / 5), days)
    days, n = np.unique(days, return_counts=True)
    data = {"days": days, "n": n, "five": days % 5 == 0}
    box = {"share": (-10.0, 10.0), "mean": (-40.0, 80.0), "log_sd": (-5.0, 8.0)}
    return latticed(_heaped, box, data, 61)
