"""Walks, gaps and crashes in time: normal given few numbers, on a lattice."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from softcvi_experiments.verdict._lattice import latticed, nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
)
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._rhythms import misfit


def _moving(theta, data):
    x, scale = theta["x"], jnp.exp(-theta["log_step"])
    curves = (x[2:] - 2 * x[1:-1] + x[:-2]) * scale
    fit = misfit(data, data["load"] * x) - 0.5 * jnp.sum(curves**2)
    fit -= curves.size * theta["log_step"]
    first = (x[0] ** 2 + x[1] ** 2) / data["wide"] ** 2
    return fit - 0.5 * first + around(theta, log_step=(data["log_unit"], 1))


def moving_target(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A target that moves, now and then hidden: how much its speed changes."""
    count = (5, 15, 45)[seed % 3]
    unit = 10 ** rng.uniform(-2, 2)
    x = np.cumsum(np.cumsum(unit * rng.uniform(0.1, 0.5) * rng.normal(size=count)))
    load = (rng.uniform(size=count) < 0.8).astype(float)
    sd = unit * rng.uniform(0.3, 1)
    y = load * x + sd * rng.normal(size=count)
    middle = np.log(unit) - 1
    data = {"y": y, "load": load, "sd": sd, "wide": 5 * unit, "log_unit": middle}
    bends = np.diff(np.eye(count), n=2, axis=0)
    inside = np.diag(load**2) * (unit / sd) ** 2
    inside[[0, 1], [0, 1]] += 1 / 25

    def conditional(u):
        # In units of the noise.
        z = u[:, 0] - np.log(unit)
        precision = inside + np.exp(-2 * z)[:, None, None] * (bends.T @ bends)
        covariance = np.linalg.inv(precision)
        shift = load * y * unit / sd**2
        mean = covariance @ shift
        height = 0.5 * mean @ shift - 0.5 * np.linalg.slogdet(precision)[1]
        height -= (count - 2) * z + 0.5 * (z + 1) ** 2
        variance = unit**2 * np.diagonal(covariance, axis1=1, axis2=2)
        return height, unit * mean, variance

    outer = {"log_step": (middle - 6, middle + 6)}
    return nested(_moving, outer, {"x": (count,)}, data, conditional, 301)


def _gaps(theta, data):
    x = data["seen"] * data["y"] + data["slots"] @ theta["missing"]
    echo = jnp.tanh(theta["echo"])
    moves = x[1:] - echo * x[:-1]
    first = x[0] ** 2 * (1 - echo**2)
    fit = 0.5 * jnp.log1p(-(echo**2)) - 0.5 * (first + jnp.sum(moves**2))
    return fit + around(theta, echo=(0.5, 0.7))


def gaps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A series with gaps: what is missing, and how long its values last."""
    count, missing = ((6, 2), (20, 8), (60, 30))[seed % 3]
    echo, y = np.tanh(rng.normal(1, 0.3)), [rng.normal()]
    for _ in range(count - 1):
        y.append(echo * y[-1] + rng.normal())
    where = np.sort(rng.choice(count, missing, replace=False))
    seen = np.ones(count)
    seen[where] = 0
    slots = np.eye(count)[:, where]
    data = {"y": np.array(y) * seen, "seen": seen, "slots": slots}
    links = np.eye(count, k=1) + np.eye(count, k=-1)
    inner_days = np.diag(np.r_[0.0, np.ones(count - 2), 0.0])

    def conditional(u):
        echo = np.tanh(u)[:, :, None]
        precision = np.eye(count) - echo * links + echo**2 * inner_days
        known = precision @ data["y"]
        given = slots.T @ precision @ slots
        covariance = np.linalg.inv(given)
        shift = -known @ slots
        mean = np.einsum("nij,nj->ni", covariance, shift)
        height = 0.5 * np.sum(mean * shift, axis=1) - 0.5 * known @ data["y"]
        height += 0.5 * (np.log1p(-(np.tanh(u[:, 0]) ** 2)))
        height -= 0.5 * np.linalg.slogdet(given)[1]
        height -= 0.5 * ((u[:, 0] - 0.5) / 0.7) ** 2
        return height, mean, np.diagonal(covariance, axis1=1, axis2=2)

    outer = {"echo": (-4.4, 5.4)}
    return nested(_gaps, outer, {"missing": (missing,)}, data, conditional, 201)


def _no_explosion(theta, data):
    one, two = theta["lag"]
    inside = (jnp.abs(two) < 1) & (two + one < 1) & (two - one < 1)
    rest = data["y"][2:] - one * data["y"][1:-1] - two * data["y"][:-2]
    return jnp.where(inside, -0.5 * jnp.sum(rest**2), -jnp.inf)


def no_explosion(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two lags of a cycle that may not explode: a normal cut off by a triangle."""
    one = rng.uniform(-1.5, 1.5)
    two, y = (0.95 - abs(one)) * rng.uniform(0.7, 1), [0.0, rng.normal()]
    for _ in range((4, 10, 40)[seed % 3]):
        y.append(one * y[-1] + two * y[-2] + rng.normal())
    box = {"lag": (np.array([-2.0, -1.0]), np.array([2.0, 1.0]))}
    return latticed(_no_explosion, box, {"y": np.array(y)}, 801)


def _crashes(theta, data):
    log_rate, k = theta["log_rate"], data["k"]
    variance = jnp.exp(2 * theta["log_sd"]) + k * jnp.exp(2 * theta["log_jump"])
    fits = -0.5 * (data["y"][:, None] ** 2 / variance + jnp.log(variance))
    terms = k * log_rate - gammaln(k + 1) + fits
    prior = around(theta, log_rate=(-1, 1), log_sd=(data["log_unit"], 1))
    prior += around(theta, log_jump=(data["log_unit"] + 1.5, 1))
    return jnp.sum(logsumexp(terms, axis=1) - jnp.exp(log_rate)) + prior


def crashes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Returns with no, one or several jumps a day that nobody saw (Merton)."""
    count, log_unit = (6, 20, 50)[seed % 3], rng.normal(-4, 2)
    jumps = rng.poisson(np.exp(rng.normal(-1, 0.5)), count)
    sd = np.exp(log_unit) * np.sqrt(1 + jumps * rng.uniform(5, 40))
    y = sd * rng.normal(size=count)
    data = {"y": y, "k": np.arange(12.0), "log_unit": log_unit}
    box = {"log_rate": (-7.5, 4.0), "log_sd": (log_unit - 6, log_unit + 5)}
    box["log_jump"] = (log_unit - 5, log_unit + 8)
    return latticed(_crashes, box, data, (71, 51, 41)[seed % 3])
