"""Labels, breaks, orders and topics that nobody saw: exact sums over all of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from scipy import special

from softcvi_experiments.verdict._coordinates import allocations, normal
from softcvi_experiments.verdict._lattice import latticed, linear_given, nested, split
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around


def _exact(log_prob, shapes, data, parts):
    """A posterior from the heights, means and variances of all ways."""
    found = allocations(*parts)
    mean, variance = (split(values, shapes) for values in found)
    target = density(log_prob, shapes, data)
    return from_moments(target, mean, variance, "sum over all ways")


def _three_kinds(theta, data):
    log_share = jax.nn.log_softmax(jnp.append(theta["share"], 0.0))
    y = data["y"][:, None]
    rows = log_share + y * theta["log_rate"] - jnp.exp(theta["log_rate"])
    prior = jnp.sum(
        data["shape"] * theta["log_rate"] - data["per"] * jnp.exp(theta["log_rate"])
    )
    return jnp.sum(logsumexp(rows, axis=1)) + prior + 1.5 * jnp.sum(log_share)


def three_kinds_of_counts(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of two or three kinds of day without names: their rates and shares."""
    count, kinds = ((6, 2), (11, 2), (9, 3))[seed % 3]
    rate = np.exp(rng.normal(1.0, 1.3, kinds))
    y = rng.poisson(rate[rng.integers(0, kinds, count)])
    shape, per = rng.uniform(0.8, 2), rng.uniform(0.1, 0.4)
    ways = np.array(list(itertools.product(range(kinds), repeat=count)))
    of_kind = ways[:, :, None] == np.arange(kinds)
    n, total = of_kind.sum(axis=1), np.einsum("nik,i->nk", of_kind, y)
    a, b, c = total + shape, n + per, n + 1.5
    height = np.sum(special.gammaln(a) - a * np.log(b) + special.gammaln(c), axis=1)
    means = special.digamma(a) - np.log(b), special.digamma(c[:, :-1])
    means = means[0], means[1] - special.digamma(c[:, -1:])
    spreads = special.polygamma(1, a), special.polygamma(1, c)
    spreads = spreads[0], spreads[1][:, :-1] + spreads[1][:, -1:]
    parts = height, np.hstack(means), np.hstack(spreads)
    shapes = {"log_rate": (kinds,), "share": (kinds - 1,)}
    data = {"y": y, "shape": shape, "per": per}
    return _exact(_three_kinds, shapes, data, parts)


def _eras(theta, data):
    rows = data["total"] * theta["log_rate"] - data["days"] * jnp.exp(theta["log_rate"])
    prior = data["shape"] * theta["log_rate"] - data["per"] * jnp.exp(theta["log_rate"])
    return logsumexp(jnp.sum(rows, axis=1)) + jnp.sum(prior)


def eras(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Rates of accidents of two to four eras, which may have begun in any year."""
    years, kinds = ((12, 2), (25, 3), (30, 4))[seed % 3]
    rate = np.exp(rng.normal(0.5, 1.0, kinds))
    y = rng.poisson(rate[np.sort(rng.integers(0, kinds, years))])
    shape, per = rng.uniform(0.7, 2), rng.uniform(0.2, 1)
    breaks = np.array(list(itertools.combinations(range(1, years), kinds - 1)))
    ends = np.pad(breaks, ((0, 0), (1, 1)), constant_values=((0, 0), (0, years)))
    summed = np.append(0, np.cumsum(y))
    total, days = np.diff(summed[ends], axis=1), np.diff(ends, axis=1)
    a, b = total + shape, days + per
    parts = (
        np.sum(special.gammaln(a) - a * np.log(b), axis=1),
        special.digamma(a) - np.log(b),
        special.polygamma(1, a),
    )
    data = {"total": total, "days": days, "shape": shape, "per": per}
    return _exact(_eras, {"log_rate": (kinds,)}, data, parts)


def _topics(theta, data):
    share = jax.nn.log_sigmoid(jnp.stack([theta["share"], -theta["share"]], axis=1))
    words = jnp.concatenate([theta["word"], jnp.zeros((2, 1))], axis=1)
    words = jax.nn.log_softmax(words, axis=1)
    chance = logsumexp(share[:, :, None] + words, axis=1)
    fit = jnp.sum(data["y"] * chance)
    return fit + data["even"] * (jnp.sum(share) + jnp.sum(words))


def topics(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Words of two topics without names, in notes that are about both (LDA)."""
    notes, kinds, length = ((2, 3, 4), (3, 3, 4), (4, 4, 3))[seed % 3]
    even = rng.uniform(0.6, 1.5)
    share, word = rng.beta(0.6, 0.6, notes), rng.dirichlet(np.full(kinds, 0.6), 2)
    of_note = np.repeat(np.arange(notes), length)
    topic = (rng.uniform(size=of_note.size) > share[of_note]).astype(int)
    of_word = np.array([rng.choice(kinds, p=word[k]) for k in topic])
    y = np.zeros((notes, kinds))
    np.add.at(y, (of_note, of_word), 1)
    first = np.array(list(itertools.product((0.0, 1.0), repeat=of_note.size)))
    by_note, by_word = np.eye(notes)[of_note], np.eye(kinds)[of_word]
    one, other = first @ by_note + even, (1 - first) @ by_note + even
    words = np.stack([first @ by_word, (1 - first) @ by_word], axis=1) + even
    height = special.betaln(one, other).sum(axis=1)
    height += special.gammaln(words).sum(axis=(1, 2))
    height -= special.gammaln(words.sum(axis=2)).sum(axis=1)
    middle = special.digamma(words)
    wide = special.polygamma(1, words)
    flat = len(first), -1
    means = [special.digamma(one) - special.digamma(other)]
    means.append((middle[:, :, :-1] - middle[:, :, -1:]).reshape(flat))
    spreads = [special.polygamma(1, one) + special.polygamma(1, other)]
    spreads.append((wide[:, :, :-1] + wide[:, :, -1:]).reshape(flat))
    shapes = {"share": (notes,), "word": (2, kinds - 1)}
    parts = height, np.hstack(means), np.hstack(spreads)
    return _exact(_topics, shapes, {"y": y, "even": even}, parts)


def _lost_labels(theta, data):
    mean = theta["base"] + theta["slope"] * data["x"]
    rest = (data["orders"] - mean) / data["sd"]
    rows = -0.5 * jnp.sum(rest**2, axis=1)
    return logsumexp(rows) + around(theta, base=(0, 2), slope=(0, 1.5))


def lost_labels(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two readings of each of some samples whose labels came off between them."""
    size, sd = (3, 4, 6)[seed % 3], rng.uniform(0.15, 0.5)
    x = rng.normal(size=size)
    y = rng.normal(0, 1) + rng.normal(0, 1.2) * x + sd * rng.normal(size=size)
    orders = np.array(list(itertools.permutations(y)))
    design = np.stack([np.ones(size), x], axis=1)
    wide = np.array([2.0, 1.5])
    covariance = np.linalg.inv(design.T @ design / sd**2 + np.diag(1 / wide**2))
    shift = orders @ design / sd**2
    means = shift @ covariance
    # All orders have the same sum of squares.
    height = 0.5 * np.sum(means * shift, axis=1)
    spreads = np.tile(np.diag(covariance), (len(orders), 1))
    data = {"x": x, "orders": orders, "sd": sd}
    parts = height, means, spreads
    return _exact(_lost_labels, {"base": (), "slope": ()}, data, parts)


def _gene_on_a_map(theta, data):
    place = 100 * jax.nn.sigmoid(theta["place"])
    marks = data["markers"]
    weights = jnp.maximum(1 - jnp.abs(place - marks) / (marks[1] - marks[0]), 0.0)
    mean = theta["level"] + theta["effect"] * (data["genes"] @ weights)
    rest = (data["y"] - mean) / data["sd"]
    prior = around(theta, place=(0, 1.5), effect=(0, data["unit"]))
    return -0.5 * jnp.sum(rest**2) + prior + around(theta, level=(0, 4 * data["unit"]))


def gene_on_a_map(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Where on a chromosome a gene is that makes plants taller, between the markers."""
    count, marks, unit = (8, 20, 60)[seed % 3], 11, 10 ** rng.uniform(-1, 2)
    genes = np.ones((count, marks))
    genes[:, 0] = rng.choice([-1, 1], count)
    for k in range(1, marks):
        turn = rng.uniform(size=count) < 0.12
        genes[:, k] = np.where(turn, -genes[:, k - 1], genes[:, k - 1])
    sd = unit * rng.uniform(0.5, 1.2)
    markers = np.linspace(0, 100, marks)
    y = unit * (rng.normal(0, 2) + rng.normal() * genes[:, rng.integers(1, 10)])
    y += sd * rng.normal(size=count)
    wide = [4 * unit, unit]

    def conditional(u):
        place = 100 * special.expit(u)
        weights = np.maximum(1 - np.abs(place - markers) / 10, 0)
        gene = weights @ genes.T
        design = np.stack([np.ones_like(gene), gene], axis=2)
        height, *rest = linear_given(design, y, sd, 0, wide)
        return height + normal(u, 0, 1.5), *rest

    data = {"genes": genes, "markers": markers, "y": y, "sd": sd, "unit": unit}
    outer, inner = {"place": (-10.0, 10.0)}, {"level": (), "effect": ()}
    return nested(_gene_on_a_map, outer, inner, data, conditional, 4001)


def _first_passage(t, wide):
    """Log density of the time at which a walk from the middle meets one border."""
    share = t / wide**2
    early, late = jnp.minimum(share, 0.3), jnp.maximum(share, 0.3)
    # Images of the border for early times, and waves for late ones.
    k = jnp.arange(-3, 4)[:, None]
    away = 1 + 4 * k
    images = jnp.sum(away * jnp.exp(-(away**2 - 1) / (8 * early)), axis=0)
    first = jnp.log(images / 2) - 1 / (8 * early) - 0.5 * jnp.log(2 * jnp.pi * early**3)
    turn = jnp.pi**2 / 2 * late
    waves = 1 - 3 * jnp.exp(-8 * turn) + 5 * jnp.exp(-24 * turn)
    then = jnp.log(jnp.pi * waves) - turn
    return jnp.where(share < 0.3, first, then) - 2 * jnp.log(wide)


def _decisions(theta, data):
    wide = jnp.exp(theta["log_wide"])
    t = data["t"] - jnp.exp(theta["log_delay"])
    inside = jnp.all(t > 0)
    safe = jnp.where(t > 0, t, 1.0)
    drift = theta["drift"]
    logs = _first_passage(safe, wide)
    logs += 0.5 * data["side"] * drift * wide - 0.5 * drift**2 * safe
    prior = around(theta, drift=(0, 1.5), log_wide=(0.3, 0.4), log_delay=(-1.2, 0.4))
    return jnp.where(inside, jnp.sum(logs) + prior, -jnp.inf)


def decisions(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Quick decisions: how clear, how careful, and how long the hand takes (drifts)."""
    count, width = (4, 10, 40)[seed % 3], 1e-3
    drift, wide, delay = rng.normal(0, 1.5), np.exp(rng.normal(0.3, 0.2)), 0.3
    t, side = np.full(count, 3.0), np.ones(count)
    place, going = np.zeros(count), np.ones(count, bool)
    for step in range(6000):
        noise = rng.normal(size=count)
        place = place + drift * width + np.sqrt(width) * noise
        out = going & (np.abs(place) > wide / 2)
        t[out], side[out] = delay + (step + 1) * width, np.sign(place[out])
        going &= ~out
    data = {"t": t, "side": side}
    box = {"drift": (-9.5, 9.5), "log_wide": (-2.4, 3.0)}
    box["log_delay"] = (-3.9, min(1.5, float(np.log(t.min()))))
    return latticed(_decisions, box, data, 61)


def _unknown_urn(theta, data):
    red, white = jnp.exp(theta["log_red"]), jnp.exp(theta["log_white"])

    def choose(n, k):
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(jnp.maximum(n - k, 0) + 1)

    y, n = data["y"], data["n"]
    enough = jnp.all(red > y - 0.5) & jnp.all(white > n - y - 0.5)
    rows = choose(red, y) + choose(white, n - y) - choose(red + white, n)
    prior = around(theta, log_red=(3, 1), log_white=(3, 1))
    return jnp.where(enough, jnp.sum(rows) + prior, -jnp.inf)


def unknown_urn(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Red and white balls of an urn, by samples that empty a large part of it."""
    samples, whole = (1, 3, 10)[seed % 3], rng.integers(8, 40, 2)
    n = rng.integers(3, max(4, int(0.6 * whole.sum())), samples)
    y = rng.hypergeometric(int(whole[0]), int(whole[1]), n)
    box = {"log_red": (-4.0, 9.7), "log_white": (-4.0, 9.7)}
    return latticed(_unknown_urn, box, {"y": y, "n": n}, 801)
