"""Densities whose margins or correlations are known exactly."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from softcvi_experiments.verdict._figures import closed, random_turn
from softcvi_experiments.verdict._lattice import split
from softcvi_experiments.verdict._mixtures import normals
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _logistic_margins(theta, data):
    x = (theta["x"] - data["shift"]) / data["unit"]
    low = 1 / (1 + jnp.exp(jnp.abs(x)))
    z = -jnp.sign(x) * ndtri(low)
    # The density of each margin, over the normal one that it replaces.
    margins = jnp.log(low) + jnp.log1p(-low) + 0.5 * z**2
    return jnp.sum(margins) - 0.5 * jnp.sum((data["factor"] @ z) ** 2)


def logistic_margins(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic variables that are linked as normals are (a copula)."""
    size, unit = (2, 5, 12)[seed % 3], 10 ** rng.uniform(-2, 2)
    noise = rng.normal(size=(size, 2 * size)) + rng.normal(size=(1, 2 * size))
    link = np.corrcoef(noise)
    factor = np.linalg.cholesky(np.linalg.inv(link)).T
    shift = unit * rng.normal(0, 4, size)
    data = {"shift": shift, "unit": unit, "factor": factor}
    variance = np.full(size, unit**2 * np.pi**2 / 3)
    return closed(_logistic_margins, data, shift, variance)


def _turned_sinh(theta, data):
    y = data["back"] @ (theta["x"] - data["shift"])
    z = jnp.arcsinh(y) / data["heavy"]
    return jnp.sum(-0.5 * z**2 - 0.5 * jnp.log1p(y**2))


def turned_sinh(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sums of variables with log-normal tails on both sides."""
    size = (2, 4, 10)[seed % 3]
    heavy, unit = rng.uniform(0.4, 0.9, size), 10 ** rng.uniform(-2, 2)
    turn, shift = random_turn(rng, size), unit * rng.normal(0, 5, size)
    variance = unit**2 * turn**2 @ ((np.exp(2 * heavy**2) - 1) / 2)
    data = {"back": turn.T / unit, "shift": shift, "heavy": heavy}
    return closed(_turned_sinh, data, shift, variance)


def _funnel_and_ball(theta, data):
    v, x = theta["v"], theta["x"]
    size = x.size
    funnel = -0.5 * (v / data["wide"]) ** 2 - jnp.log(data["wide"])
    funnel -= 0.5 * (jnp.sum(x**2) * jnp.exp(-v) + size * v)
    ball = -0.5 * ((v - data["far"]) ** 2 + jnp.sum((x - data["off"]) ** 2))
    return jnp.logaddexp(
        jnp.log(data["share"]) + funnel, jnp.log1p(-data["share"]) + ball
    )


def funnel_and_ball(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A funnel and, beside its mouth, a round normal."""
    size, wide = (1, 3, 6)[seed % 3], rng.uniform(0.8, 1.5)
    data = {"wide": wide, "far": rng.uniform(-1, 6), "off": rng.uniform(8, 12)}
    data["share"] = rng.uniform(0.35, 0.65)
    share, far, off = data["share"], data["far"], data["off"]
    means = np.append((1 - share) * far, np.full(size, (1 - share) * off))
    funnel = np.append(wide**2, np.full(size, np.exp(wide**2 / 2)))
    ball = 1 + np.append(far, np.full(size, off)) ** 2
    shapes = {"v": (), "x": (size,)}
    mean = split(means, shapes)
    variance = split(share * funnel + (1 - share) * ball - means**2, shapes)
    target = density(_funnel_and_ball, shapes, data)
    return from_moments(target, mean, variance, "closed form")


def _correlations(theta, data):
    size = round((1 + (1 + 8 * theta["r"].size) ** 0.5) / 2)
    upper = jnp.zeros((size, size)).at[jnp.triu_indices(size, 1)].set(theta["r"])
    whole = upper + upper.T + jnp.eye(size)
    minors = jnp.stack([jnp.linalg.det(whole[:k, :k]) for k in range(2, size + 1)])
    inside = jnp.all(minors > 0) & jnp.all(jnp.abs(theta["r"]) < 1)
    height = data["more"] * jnp.log(jnp.where(inside, minors[-1], 1.0))
    return jnp.where(inside, height, -jnp.inf)


def correlations(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Correlations of which only all together can be impossible (LKJ)."""
    size, more = (2, 3, 4)[seed % 3], rng.uniform(0.2, 3)
    shape = more + size / 2
    count = size * (size - 1) // 2
    target = density(_correlations, {"r": (count,)}, {"more": more})
    right = {"r": np.zeros(count)}, {"r": np.full(count, 1 / (2 * shape + 1))}
    return from_moments(target, *right, "closed form")


def family_tree(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Eight normals as pairs of pairs of pairs, each time six times as far apart."""
    size = (2, 4, 10)[seed % 3]
    means = rng.normal(0, 5, (1, size))
    for gap in (60.0, 14.0, 4.0):
        ways = rng.normal(size=means.shape)
        ways *= 0.5 * gap / np.linalg.norm(ways, axis=1, keepdims=True)
        means = np.concatenate([means - ways, means + ways])
    weights = 0.05 + 0.6 * rng.dirichlet(np.full(8, 2.0))
    return normals(weights, means, [np.eye(size)] * 8)
