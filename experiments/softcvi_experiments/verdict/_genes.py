"""Genes and species: shares that are made of a few unknown numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy import special

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _blood_groups(theta, data):
    p, q, r = jax.nn.softmax(jnp.append(theta["gene"], 0.0))
    types = jnp.stack([p**2 + 2 * p * r, q**2 + 2 * q * r, 2 * p * q, r**2])
    return data["y"] @ jnp.log(types) + around(theta, gene=(0, 1.5))


def blood_groups(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Shares of three genes from the counts of four blood groups."""
    p, q, r = rng.dirichlet([3.0, 2.0, 6.0])
    y = rng.multinomial(
        (15, 60, 400)[seed % 3],
        [p**2 + 2 * p * r, q**2 + 2 * q * r, 2 * p * q, r**2],
    )
    box = {"gene": (np.full(2, -8.0), np.full(2, 8.0))}
    return latticed(_blood_groups, box, {"y": y}, 401)


def _linkage(theta, data):
    share = 0.5 * jax.nn.sigmoid(theta["x"])
    y, n = data["y"], data["n"]
    # Which of the two phases a parent has is not known.
    one = y * jnp.log(share) + (n - y) * jnp.log1p(-share)
    two = (n - y) * jnp.log(share) + y * jnp.log1p(-share)
    return jnp.sum(jnp.logaddexp(one, two)) + around(theta, x=(0, 1.5))


def linkage(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """How near pairs of genes are, from families whose phase is unknown."""
    size, families = (1, 4, 15)[seed % 3], 5
    share = 0.5 * rng.beta(1, 2, (size, 1))
    n = rng.integers(3, 7, (size, families))
    y = rng.binomial(n, share)
    y = np.where(rng.uniform(size=y.shape) < 0.5, y, n - y)
    grid = np.linspace(-14, 14, 4001)
    log_p = np.log(0.5 * special.expit(grid))
    log_q = np.log1p(-0.5 * special.expit(grid))
    a, b = y[:, :, None], (n - y)[:, :, None]
    rows = np.logaddexp(a * log_p + b * log_q, b * log_p + a * log_q).sum(axis=1)
    weights = special.softmax(rows - 0.5 * (grid / 1.5) ** 2, axis=1)
    mean = weights @ grid
    variance = weights @ grid**2 - mean**2
    # Families are rows of the data, pairs of genes their columns.
    target = density(_linkage, {"x": (size,)}, {"y": y.T, "n": n.T})
    return from_moments(target, {"x": mean}, {"x": variance}, "quadrature")


def _distance(theta, data):
    slow = jnp.exp(-jnp.exp(theta["log_slow"]))
    quick = jnp.exp(-jnp.exp(theta["log_slow"]) * (1 + jnp.exp(theta["log_more"])) / 2)
    same = 0.25 + 0.25 * slow + 0.5 * quick
    near, far = 0.25 + 0.25 * slow - 0.5 * quick, 0.5 - 0.5 * slow
    rows = data["y"] @ jnp.log(jnp.stack([same, near, far]))
    return rows + around(theta, log_slow=(-2, 1.5), log_more=(1, 1))


def distance_of_species(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Time and bias of changes between two sequences (Kimura), nearly worn out."""
    slow, more = np.exp(rng.normal(-1.0, 0.7)), np.exp(rng.normal(1, 0.4))
    one, two = np.exp(-slow), np.exp(-slow * (1 + more) / 2)
    shares = [0.25 + 0.25 * one + 0.5 * two, 0.25 + 0.25 * one - 0.5 * two]
    y = rng.multinomial((20, 60, 300)[seed % 3], [*shares, 0.5 - 0.5 * one])
    box = {"log_slow": (-13.0, 8.0), "log_more": (-6.0, 8.0)}
    return latticed(_distance, box, {"y": y}, 401)


def _quartet(theta, data):
    kept = jnp.exp(-jnp.exp(theta["log_branch"]))
    # A sign that changes along branches: means of products of signs at the tips.
    tips, middle = kept[:4], kept[4]
    heights = []
    for one, two in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))):
        total = 1.0
        for i, j in (one, two):
            total += data["both"][:, i, j] * tips[i] * tips[j]
        for i in one:
            for j in two:
                total += data["both"][:, i, j] * tips[i] * tips[j] * middle
        total += data["all"] * jnp.prod(tips)
        heights.append(data["y"] @ jnp.log(total))
    return logsumexp(jnp.stack(heights)) + around(theta, log_branch=(-1.5, 1))


def quartet(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Branches of a tree of four species whose shape is summed out."""
    sites = (20, 80, 200)[seed % 3]
    kept = np.exp(-np.exp(rng.normal(-1.5, 0.5, 5)))
    turns = np.where(rng.uniform(size=(sites, 5)) < (1 - kept) / 2, -1, 1)
    tips = turns[:, :4]
    tips[:, 2:] *= turns[:, 4:]
    tips = tips * tips[:, :1]
    patterns = np.array(list(np.ndindex(1, 2, 2, 2))) * 2 - 1
    patterns[:, 0] = 1
    y = np.array([(tips == p).all(axis=1).sum() for p in patterns])
    both = patterns[:, :, None] * patterns[:, None, :]
    data = {"y": y, "both": both, "all": patterns.prod(axis=1)}
    middle = {"log_branch": -1.5}
    return weighed(rng, _quartet, {"log_branch": (5,)}, data, {}, middle)


def _inbred(theta, data):
    p, f = jax.nn.sigmoid(theta["gene"]), jax.nn.sigmoid(theta["inbred"])
    both, none = p**2 + f * p * (1 - p), (1 - p) ** 2 + f * p * (1 - p)
    mixed = 2 * p * (1 - p) * (1 - f)
    rows = data["y"] @ jnp.log(jnp.stack([both, mixed, none]))
    return jnp.sum(rows) + around(theta, gene=(0, 1.5), inbred=(-2, 1.5))


def inbred(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Share of a gene, and how much more alike relatives are than strangers."""
    p, f = rng.uniform(0.2, 0.8), rng.uniform(0, 0.4)
    shares = p**2 + f * p * (1 - p), 2 * p * (1 - p) * (1 - f)
    y = rng.multinomial((8, 25, 150)[seed % 3], [*shares, 1 - sum(shares)])
    box = {"gene": (-9.0, 9.0), "inbred": (-12.0, 8.0)}
    return latticed(_inbred, box, {"y": y}, 401)


def _lineages(theta, data):
    grow, scale = theta["grow"], theta["log_scale"]
    small = jnp.abs(grow) < 1e-3
    safe = jnp.where(small, 1e-3, grow)
    ends = (jnp.exp(safe * data["end"]) - jnp.exp(safe * data["begin"])) / safe
    ends = jnp.where(small, data["end"] - data["begin"], ends)
    rows = grow * data["end"] - scale - data["pairs"] * ends * jnp.exp(-scale)
    return jnp.sum(rows) + around(theta, grow=(0, 2), log_scale=(0, 1.5))


def lineages(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times at which lines of descent meet: size of a population and its growth."""
    count, grow = (3, 6, 15)[seed % 3], rng.uniform(0, 3)
    k, time, begin, end = count, 0.0, [], []
    while k > 1:
        begin.append(time)
        more = rng.exponential() * 2 / (k * (k - 1))
        time = np.log(np.exp(grow * time) + grow * more) / grow
        end.append(time)
        k -= 1
    lines = np.arange(count, 1, -1)
    data = {"begin": begin, "end": end, "pairs": lines * (lines - 1) / 2}
    data = {name: np.array(value) for name, value in data.items()}
    box = {"grow": (-14.0, 14.0), "log_scale": (-10.0, 14.0)}
    return latticed(_lineages, box, data, 401)
