"""Choices, markets, minds and networks, and data that tell only part of the truth."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from scipy import special

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _normal(u, mean, sd):
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def _weak_instrument(theta, data):
    first = data["x"] - theta["lift"] * data["z"]
    second = data["y"] - theta["effect"] * data["x"]
    rest = (second - data["link"] * first) ** 2 / (1 - data["link"] ** 2)
    prior = around(theta, lift=(0, 1), effect=(0, 3))
    return -0.5 * jnp.sum(first**2 + rest) + prior


def weak_instrument(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """An effect through something that hardly moves its cause: a long thin cross."""
    count, link = (8, 20, 60)[seed % 3], rng.uniform(0.3, 0.95) * rng.choice([-1, 1])
    z, u = rng.normal(size=count), rng.normal(size=(2, count))
    x = rng.uniform(0, 0.4) * z + u[0]
    y = rng.normal() * x + link * u[0] + np.sqrt(1 - link**2) * u[1]
    box = {"lift": (-6.7, 6.7), "effect": (-20.0, 20.0)}
    data = {"x": x, "y": y, "z": z, "link": link}
    return latticed(_weak_instrument, box, data, 801)


def _patience(theta, data):
    later = data["later"] / (1 + jnp.exp(theta["log_k"]) * data["days"])
    linear = jnp.exp(theta["log_keen"]) * (later - data["now"])
    rows = jax.nn.log_sigmoid(data["y"] * linear)
    return jnp.sum(rows) + around(theta, log_k=(-3, 2), log_keen=(0, 1))


def patience(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Money now or more of it later: how quickly the future loses its worth."""
    count = (5, 15, 50)[seed % 3]
    now, later = rng.uniform(1, 5, count), rng.uniform(5, 10, count)
    days = np.exp(rng.uniform(0, 5, count))
    linear = later / (1 + np.exp(rng.normal(-3, 1)) * days) - now
    y = np.sign(1.5 * linear + rng.logistic(size=count))
    box = {"log_k": (-17.0, 11.0), "log_keen": (-6.8, 6.8)}
    data = {"now": now, "later": later, "days": days, "y": y}
    return latticed(_patience, box, data, 401)


def _reward(theta, data):
    rate, keen = jax.nn.sigmoid(theta["rate"]), jnp.exp(theta["log_keen"])

    def trial(worth, seen):
        choice, paid = seen
        gap = keen * (worth[1] - worth[0])
        row = jax.nn.log_sigmoid(choice * gap)
        chosen = jnp.stack([choice < 0, choice > 0])
        return worth + rate * chosen * (paid - worth), row

    begin = jnp.zeros(2, rate.dtype)
    _, rows = jax.lax.scan(trial, begin, (data["choice"], data["paid"]))
    return jnp.sum(rows) + around(theta, rate=(0, 1.5), log_keen=(1, 1))


def two_levers(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A rat that learns which of two levers pays: quick and careless, or slow."""
    count, worth = (10, 30, 80)[seed % 3], np.zeros(2)
    rate, keen, choices, pays = rng.uniform(0.1, 0.7), rng.uniform(1, 5), [], []
    for _ in range(count):
        pick = int(rng.logistic() < keen * (worth[1] - worth[0]))
        paid = float(rng.uniform() < (0.3, 0.7)[pick])
        worth[pick] += rate * (paid - worth[pick])
        choices.append(2 * pick - 1)
        pays.append(paid)
    data = {"choice": np.array(choices), "paid": np.array(pays)}
    box = {"rate": (-10.0, 10.0), "log_keen": (-5.7, 7.7)}
    return latticed(_reward, box, data, 161)


def _forgetting(theta, data):
    log_share = -jnp.exp(theta["log_power"]) * jnp.log1p(
        jnp.exp(theta["log_rate"]) * data["t"]
    )
    rows = data["y"] * log_share
    rows += (data["n"] - data["y"]) * jnp.log(-jnp.expm1(log_share))
    return jnp.sum(rows) + around(theta, log_power=(-1, 1), log_rate=(0, 2))


def forgetting(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Words that are remembered after hours and days: a power of time."""
    t, n = np.array([0.1, 1, 5, 24, 120.0]), np.full(5, (4, 15, 60)[seed % 3])
    share = (1 + np.exp(rng.normal(0, 1)) * t) ** -np.exp(rng.normal(-1.3, 0.4))
    data = {"t": t, "n": n, "y": rng.binomial(n, share)}
    box = {"log_power": (-7.8, 5.8), "log_rate": (-14.0, 14.0)}
    return latticed(_forgetting, box, data, 401)


def _voters(theta, data):
    far = (theta["voter"][:, None] - theta["party"]) ** 2
    linear = data["level"] - far
    rows = data["y"] * linear - data["n"] * jax.nn.softplus(linear)
    return jnp.sum(rows) + around(theta, voter=(0, 1.5), party=(0, 1.5))


def voters(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Voters near two parties or far from them, on a line that has no direction."""
    count, level = (1, 5, 20)[seed % 3], 2.0
    voter, party = 1.5 * rng.normal(size=count), rng.normal(0, 1.5, 2)
    n = np.full((count, 2), 4)
    y = rng.binomial(n, special.expit(level - (voter[:, None] - party) ** 2))
    data = {"y": y, "n": n, "level": level}
    x = np.linspace(-10, 10, 401)

    def conditional(u):
        linear = level - (x - u[:, :, None]) ** 2
        loss = np.logaddexp(0, linear)
        rows = np.einsum("ik,nkx->nix", y, linear) - np.einsum("ik,nkx->nix", n, loss)
        rows -= 0.5 * (x / 1.5) ** 2
        total = special.logsumexp(rows, axis=2)
        weights = np.exp(rows - total[:, :, None])
        mean = weights @ x
        variance = weights @ x**2 - mean**2
        return total.sum(axis=1) + _normal(u, 0, 1.5), mean, variance

    outer = {"party": (np.full(2, -10.0), np.full(2, 10.0))}
    return nested(_voters, outer, {"voter": (count,)}, data, conditional, 41)


def _factory(theta, data):
    swap, share = theta["swap"], theta["share"]
    logs = jnp.stack(
        [
            jax.nn.log_sigmoid(share) + swap * data["log_men"],
            jax.nn.log_sigmoid(-share) + swap * data["log_tools"],
        ]
    )
    # As the power goes to zero, the product remains.
    small = jnp.abs(swap) < 1e-2
    safe = jnp.where(small, 1.0, swap)
    mix = jax.nn.sigmoid(share)
    plain = mix * data["log_men"] + (1 - mix) * data["log_tools"]
    bend = 0.5 * swap * mix * (1 - mix) * (data["log_men"] - data["log_tools"]) ** 2
    output = jnp.where(small, plain + bend, logsumexp(logs, axis=0) / safe)
    rest = (data["log_y"] - theta["level"] - output) / data["sd"]
    prior = around(theta, swap=(0, 1.5), share=(0, 1), level=(0, 2))
    return -0.5 * jnp.sum(rest**2) + prior


def factory(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Output of men and tools that replace each other more or less easily (CES)."""
    count, sd = (5, 12, 40)[seed % 3], rng.uniform(0.1, 0.3)
    men, tools = rng.normal(0, 1, (2, count))
    swap, mix = rng.normal(0, 1), rng.uniform(0.3, 0.7)
    y = np.log(mix * np.exp(swap * men) + (1 - mix) * np.exp(swap * tools)) / swap
    data = {"log_men": men, "log_tools": tools, "sd": sd}
    data["log_y"] = rng.normal() + y + sd * rng.normal(size=count)
    box = {"swap": (-10.0, 10.0), "share": (-6.7, 6.7), "level": (-9.0, 9.0)}
    return latticed(_factory, box, data, 81)


def _frontier(theta, data):
    noise, waste = jnp.exp(theta["log_noise"]), jnp.exp(theta["log_waste"])
    total = jnp.sqrt(noise**2 + waste**2)
    z = (data["y"] - theta["best"]) / total
    rows = -0.5 * z**2 - jnp.log(total) + log_ndtr(-z * waste / noise)
    prior = around(theta, best=(0, 3), log_noise=(-1, 0.8), log_waste=(-0.5, 0.8))
    return jnp.sum(rows) + prior


def frontier(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Firms below what is possible by chance or by waste (a stochastic frontier)."""
    count = (5, 12, 30)[seed % 3]
    y = rng.normal() + rng.uniform(0.2, 0.5) * rng.normal(size=count)
    y -= rng.uniform(0.2, 1.5) * np.abs(rng.normal(size=count))
    box = {"best": (-15.0, 15.0), "log_noise": (-6.4, 4.0), "log_waste": (-6.0, 4.9)}
    return latticed(_frontier, box, {"y": y}, 61)


def _weakest(theta, data):
    rest = (data["y"] - jnp.min(theta["strength"])) / data["sd"]
    return -0.5 * jnp.sum(rest**2) + around(theta, strength=(1, 2))


def weakest_link(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How strong the links of a chain are, by the strength of the chain."""
    size, sd = (2, 3, 3)[seed % 3], rng.uniform(0.3, 1)
    y = np.min(rng.normal(1, 2, size)) + sd * rng.normal(size=3 + seed)
    box = {"strength": (np.full(size, -9.0), np.full(size, 14.0))}
    return latticed(_weakest, box, {"y": y, "sd": sd}, 401 if size == 2 else 111)


def _league(theta, data):
    attack, defence = theta["attack"], theta["defence"]
    home = theta["level"] + theta["home"] + attack[:, None] - defence
    away = theta["level"] + attack[:, None] - defence
    rows = data["home"] * home - data["played"] * jnp.exp(home)
    rows += data["away"] * away - data["played"].T * jnp.exp(away)
    prior = around(theta, attack=(0, 0.5), defence=(0, 0.5), level=(0, 1))
    return jnp.sum(rows) + prior + around(theta, home=(0, 0.5))


def league(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Goals of a season: attack and defence of each team, and playing at home."""
    teams = (3, 4, 5)[seed % 3]
    played = (rng.uniform(size=(teams, teams)) < 0.8) * (1 - np.eye(teams))
    gap = 0.4 * rng.normal(size=(teams, 1)) - 0.4 * rng.normal(size=teams)
    home = played * rng.poisson(1.3 * np.exp(gap + 0.3))
    away = played.T * rng.poisson(1.3 * np.exp(gap))
    data = {"home": home, "away": away, "played": played}
    shapes = {"attack": (teams,), "defence": (teams,), "level": (), "home": ()}
    return weighed(rng, _league, shapes, data, {})


def _steep(theta, data):
    slope = theta["slope"]
    total = data["sd_y"] ** 2 + (slope * data["sd_x"]) ** 2
    rest = data["y"] - theta["level"] - slope * data["x"]
    rows = -0.5 * (rest**2 / total + jnp.log(total))
    return jnp.sum(rows) + around(theta, level=(0, 5), slope=(0, 10))


def steep_or_falling(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line through blurred points that may be steep upwards or downwards."""
    count, true = (3, 6, 15)[seed % 3], 0.3 * rng.normal(size=(3, 6, 15)[seed % 3])
    (sd_x, sd_y), slope = rng.uniform(0.3, 0.6, 2), rng.choice([-3.0, 3.0])
    x = true + sd_x * rng.normal(size=count)
    y = slope * true + sd_y * rng.normal(size=count)
    data = {"x": x, "y": y, "sd_x": sd_x, "sd_y": sd_y}

    def conditional(u):
        total = np.sqrt(sd_y**2 + (u * sd_x) ** 2)
        design = np.ones((len(u), count, 1))
        rows = y - u * x
        height, *rest = linear_given(design, rows, total[:, 0], 0, 5)
        return height + _normal(u, 0, 10), *rest

    outer = {"slope": (-67.0, 67.0)}
    return nested(_steep, outer, {"level": ()}, data, conditional, 4001)


def _totals(theta, data):
    up = jax.nn.log_sigmoid(theta["chance"])
    down = jax.nn.log_sigmoid(-theta["chance"])
    one, two = data["one"], data["two"]
    terms = data["ways"] + one * up[0] + (data["n"][:, :1] - one) * down[0]
    terms += two * up[1] + (data["n"][:, 1:] - two) * down[1]
    return jnp.sum(logsumexp(terms, axis=1)) + around(theta, chance=(0, 1.5))


def only_totals(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Votes of men and women of districts, of which only the totals are known."""
    count = (2, 5, 15)[seed % 3]
    n = rng.integers(4, 16, (count, 2))
    y = rng.binomial(n, rng.uniform(0.15, 0.85, 2)).sum(axis=1)
    k = np.arange(16)[None, :]
    one, two = k + 0 * y[:, None], y[:, None] - k
    inside = (one <= n[:, :1]) & (two >= 0) & (two <= n[:, 1:])
    one, two = np.where(inside, one, 0), np.where(inside, two, 0)
    ways = np.log(special.binom(n[:, :1], one) * special.binom(n[:, 1:], two))
    data = {"one": one, "two": two, "n": n, "ways": np.where(inside, ways, -1e6)}
    box = {"chance": (np.full(2, -10.0), np.full(2, 10.0))}
    return latticed(_totals, box, data, 301)


def _extremes(theta, data):
    scale = jnp.exp(-theta["log_sd"])
    low = (data["low"] - theta["mean"]) * scale
    high = (data["high"] - theta["mean"]) * scale
    # The smaller tail of both, so that no difference of ones is taken.
    right = low > 0
    inner = jax.scipy.special.ndtr(jnp.where(right, -low, high))
    inner -= jax.scipy.special.ndtr(jnp.where(right, -high, low))
    rows = (data["n"] - 2) * jnp.log(inner + 1e-20) - 0.5 * (low**2 + high**2)
    middle, unit = data["guess"], data["unit"]
    prior = around(theta, mean=(middle, 3 * unit), log_sd=(jnp.log(unit), 1))
    return jnp.sum(rows - 2 * theta["log_sd"]) + prior


def only_extremes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """The coldest and the warmest day of some weeks, and nothing in between."""
    weeks, unit, n = (1, 3, 10)[seed % 3], 10 ** rng.uniform(-2, 2), 7.0
    place = unit * rng.normal(0, 5)
    y = place + unit * rng.normal(size=(weeks, 7))
    data = {"low": y.min(axis=1), "high": y.max(axis=1), "n": n, "unit": unit}
    data["guess"] = place + unit * rng.normal()
    middle, log_unit = data["guess"], np.log(unit)
    box = {"mean": (middle - 21 * unit, middle + 21 * unit)}
    box["log_sd"] = (log_unit - 5, log_unit + 6.5)
    return latticed(_extremes, box, data, 401)


def _triangles(theta, data):
    terms = data["ties"] * theta["tie"] + data["rings"] * theta["ring"]
    total = logsumexp(data["log_graphs"] + terms)
    rows = data["seen_ties"] * theta["tie"] + data["seen_rings"] * theta["ring"]
    return rows - data["groups"] * total + around(theta, tie=(0, 2), ring=(0, 1.5))


def friends_of_friends(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ties among four people of groups, and a taste for triangles (exact sums)."""
    groups = (1, 4, 20)[seed % 3]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    graphs = np.array(list(np.ndindex(*(2,) * 6)))
    at = {pair: i for i, pair in enumerate(pairs)}
    rings = sum(
        graphs[:, at[a, b]] * graphs[:, at[b, c]] * graphs[:, at[a, c]]
        for a, b, c in [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    )
    ties = graphs.sum(axis=1)
    chance = special.softmax(rng.normal(-0.5, 0.5) * ties + rng.uniform(0, 0.7) * rings)
    seen = rng.choice(64, groups, p=chance)
    data = {"ties": ties, "rings": rings, "log_graphs": np.zeros(64), "groups": groups}
    data |= {"seen_ties": ties[seen].sum(), "seen_rings": rings[seen].sum()}
    box = {"tie": (-13.5, 13.5), "ring": (-10.0, 10.0)}
    return latticed(_triangles, box, data, 401)


def _silent(theta, data):
    mean, slope = theta["mean"], theta["slope"]
    seen = -0.5 * (data["y"] - mean) ** 2 + jax.nn.log_sigmoid(slope * data["y"])
    nodes = mean + data["nodes"]
    gone = logsumexp(data["log_weights"] + jax.nn.log_sigmoid(-slope * nodes))
    return (
        jnp.sum(seen) + data["gone"] * gone + around(theta, mean=(0, 2), slope=(0, 1))
    )


def silent(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Answers that are withheld because of what they are: high or low ones."""
    count, slope = (5, 15, 50)[seed % 3], rng.normal(0, 1)
    y = rng.normal() + rng.normal(size=count)
    shown = rng.logistic(size=count) < slope * y
    shown[0] = True
    nodes = np.linspace(-6, 6, 41)
    log_weights = special.log_softmax(-0.5 * nodes**2)
    data = {"y": y[shown], "gone": count - shown.sum(), "nodes": nodes}
    data["log_weights"] = log_weights
    box = {"mean": (-10.0, 10.0), "slope": (-6.7, 6.7)}
    return latticed(_silent, box, data, 301)
