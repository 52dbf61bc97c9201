"""Ranks, contests, networks and answers of people: sampling and lattices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp, ndtr
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._weighed import normal_prior, weighed


def _rankings(theta, data):
    worth = theta["worth"][data["order"].astype(int)]
    # Each place goes to one of those that are left.
    left = jax.lax.cumlogsumexp(worth[:, ::-1], axis=1)[:, ::-1]
    return jnp.sum((worth - left)[:, :-1]) + normal_prior(theta["worth"], 1.5)


def rankings(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Races of which only the order at the end is known (Plackett and Luce)."""
    races, size = ((4, 3), (10, 6), (25, 12))[seed % 3]
    worth = rng.normal(0, 1.2, size)
    order = np.argsort(-worth - rng.gumbel(size=(races, size)), axis=1)
    return weighed(rng, _rankings, {"worth": (size,)}, {"order": order}, {})


def _draws_in_chess(theta, data):
    gap = theta["skill"][data["white"].astype(int)]
    gap = gap - theta["skill"][data["black"].astype(int)] + theta["white"]
    draw = theta["draw"]
    total = logsumexp(jnp.stack([gap / 2, -gap / 2, draw + 0 * gap]), axis=0)
    rows = data["score"] * gap / 2 + (data["score"] == 0) * draw - total
    prior = normal_prior(theta["skill"], 1.0) + normal_prior(theta["white"], 0.5)
    return jnp.sum(rows) + prior + normal_prior(draw, 1.0)


def chess(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Games that may be drawn, and a right to begin (Davidson)."""
    games, size = ((12, 3), (40, 6), (120, 14))[seed % 3]
    pairs = np.array([rng.choice(size, 2, replace=False) for _ in range(games)])
    skill = rng.normal(0, 1, size)
    gap = skill[pairs[:, 0]] - skill[pairs[:, 1]] + 0.3
    heights = np.stack([-gap / 2, 0 * gap + rng.normal(-0.3, 0.5), gap / 2])
    score = np.argmax(heights + rng.gumbel(size=heights.shape), axis=0) - 1
    data = {"white": pairs[:, 0], "black": pairs[:, 1], "score": score}
    shapes = {"skill": (size,), "white": (), "draw": ()}
    return weighed(rng, _draws_in_chess, shapes, data, {})


def _coins(theta, data):
    y, n = data["y"], data["n"]
    rows = []
    for name in ("first", "second"):
        x = theta[name]
        rows.append(y * jax.nn.log_sigmoid(x) + (n - y) * jax.nn.log_sigmoid(-x))
    share = theta["share"]
    total = jnp.logaddexp(
        rows[0] + jax.nn.log_sigmoid(share), rows[1] + jax.nn.log_sigmoid(-share)
    )
    prior = (theta["first"] ** 2 + theta["second"] ** 2) / 4 + share**2
    return jnp.sum(total) - 0.5 * prior


def two_coins(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Trials with one of two coins, nobody knows which: labels can be exchanged."""
    count = (8, 25)[seed % 2]
    chance = np.array([rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.9)])
    coin = (rng.uniform(size=count) < rng.uniform(0.3, 0.7)).astype(int)
    n = rng.integers(4, 12, count)
    data = {"y": rng.binomial(n, chance[coin]), "n": n}
    box = dict.fromkeys(("first", "second"), (-12.0, 12.0))
    return latticed(_coins, box | {"share": (-7.0, 7.0)}, data, 61)


def _letters(theta, data):
    linear = theta["level"] + theta["sends"][:, None] + theta["gets"]
    both = linear + linear.T + theta["answers"]
    upper = jnp.triu(jnp.ones_like(linear), 1)
    heights = jnp.stack([0 * linear, linear, linear.T, both])
    sent = data["sent"]
    rows = sent * linear + sent.T * linear.T + sent * sent.T * theta["answers"]
    rows -= logsumexp(heights, axis=0)
    prior = normal_prior(theta["sends"], 1.0) + normal_prior(theta["gets"], 1.0)
    prior += normal_prior(theta["level"], 2.0) + normal_prior(theta["answers"], 2.0)
    return jnp.sum(rows * upper) + prior


def letters(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Who writes to whom, with a habit of answering (Holland and Leinhardt)."""
    size = (4, 7)[seed % 2]
    linear = rng.normal(-0.5, 0.3) + rng.normal(0, 0.8, (size, 1))
    linear = linear + rng.normal(0, 0.8, size)
    wrote = rng.logistic(size=(size, size)) < linear
    back = rng.uniform(size=(size, size)) < 0.3
    sent = np.where(back, wrote | wrote.T, wrote) * (1 - np.eye(size))
    shapes = {"sends": (size,), "gets": (size,), "level": (), "answers": ()}
    return weighed(rng, _letters, shapes, {"sent": sent}, {})


def _two_camps(theta, data):
    within, across = theta["within"], theta["across"]
    # The camps of all people are summed out; rows are divisions.
    logit = jnp.where(
        data["pairs"] == 2,
        across,
        jnp.where(data["pairs"] == 1, within[0], within[1]),
    )
    rows = data["tied"] * logit - jax.nn.softplus(logit)
    prior = jnp.sum((within / 1.5) ** 2) + (across / 1.5) ** 2
    return logsumexp(jnp.sum(rows, axis=1)) - 0.5 * prior


def two_camps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Friends and strangers in two camps; who is in which is summed out."""
    size = (4, 5)[seed % 2]
    camps = np.array(list(np.ndindex(*(2,) * size)))
    left, right = np.triu_indices(size, 1)
    pairs = np.where(camps[:, left] == camps[:, right], camps[:, left], 2)
    camp = np.arange(size) % 2
    logit = np.where(camp[left] == camp[right], 1.5, -1.5)
    data = {"pairs": pairs, "tied": rng.logistic(size=left.size) < logit}
    box = {
        "within": (np.full(2, -8.0), np.full(2, 8.0)),
        "across": (-8.0, 8.0),
    }
    return latticed(_two_camps, box, data, 41)


def _detection(theta, data):
    far, border = theta["far"], theta["border"]
    rows = 0.0
    for name, z in (("noise", border + far / 2), ("signal", border - far / 2)):
        no = data[name + "_n"] - data[name]
        rows += data[name] * log_ndtr(-z) + no * log_ndtr(z)
    prior = ((far - 1) / data["sd"]) ** 2 + (border / data["sd"]) ** 2
    return jnp.sum(rows - 0.5 * prior)


def detection(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Hits and false alarms of observers, each on their own: bias and keenness."""
    count = (1, 8, 30)[seed % 3]
    trials = rng.integers(3, 25, (2, count))
    far, border = rng.normal(1.5, 0.7, count), rng.normal(0, 0.6, count)
    signal = rng.binomial(trials[0], stats.norm.cdf(far / 2 - border))
    noise = rng.binomial(trials[1], stats.norm.cdf(-far / 2 - border))
    data = {"signal": signal, "signal_n": trials[0], "noise": noise}
    data |= {"noise_n": trials[1], "sd": 1.5}
    axis = np.linspace(-9, 9, 241)
    x, b = np.meshgrid(axis, axis, indexing="ij")
    ups = special.log_ndtr(np.stack([x / 2 - b, b - x / 2, -b - x / 2, b + x / 2]))
    counts = np.stack([signal, trials[0] - signal, noise, trials[1] - noise])
    height = np.tensordot(counts, ups, axes=(0, 0))
    height -= 0.5 * (((x - 1) / 1.5) ** 2 + (b / 1.5) ** 2)
    weights = special.softmax(height.reshape(count, -1), axis=1)
    mean, variance = {}, {}
    for name, values in (("far", x.ravel()), ("border", b.ravel())):
        mean[name] = weights @ values
        variance[name] = weights @ values**2 - mean[name] ** 2
    target = density(_detection, {"far": (count,), "border": (count,)}, data)
    return from_moments(target, mean, variance, "quadrature")


def _lapses(theta, data):
    lapse = 0.5 * jax.nn.sigmoid(theta["lapse"])
    z = jnp.exp(theta["log_slope"]) * (data["x"] - theta["middle"])
    share = data["guess"] + (1 - data["guess"] - lapse) * ndtr(z)
    rows = data["y"] * jnp.log(share) + (data["n"] - data["y"]) * jnp.log1p(-share)
    prior = (theta["middle"] / 2) ** 2 + theta["log_slope"] ** 2
    return jnp.sum(rows) - 0.5 * prior - 0.5 * (theta["lapse"] + 3) ** 2


def lapses(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Forced choices between stimuli, some of them made in absence of mind."""
    x, n = np.linspace(-2, 2, 6), np.full(6, (4, 20)[seed % 2])
    z = np.exp(rng.normal(0.5, 0.3)) * (x - rng.normal(0, 0.7))
    share = 0.5 + 0.45 * stats.norm.cdf(z)
    data = {"x": x, "n": n, "y": rng.binomial(n, share), "guess": 0.49}
    box = {"middle": (-14.0, 14.0), "log_slope": (-6.0, 6.5), "lapse": (-10.0, 4.0)}
    return latticed(_lapses, box, data, 71)
