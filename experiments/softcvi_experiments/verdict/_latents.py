"""Latent values beside the numbers of interest: blurred places, scores, scales."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._lattice import nested
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _measurement_error(theta, data):
    x = theta["x"]
    fit = theta["level"] + theta["slope"] * x
    rows = (x / data["wide"]) ** 2 + ((data["w"] - x) / data["blur"]) ** 2
    rows += ((data["y"] - fit) / data["noise"]) ** 2
    return -0.5 * jnp.sum(rows) - 0.02 * (theta["level"] ** 2 + theta["slope"] ** 2)


def measurement_error(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line through points whose places are blurred, too."""
    count = (8, 15, 25)[seed % 3]
    wide, blur, noise = 1.0, rng.uniform(0.5, 1.2), rng.uniform(0.3, 0.8)
    x = wide * rng.normal(size=count)
    w = x + blur * rng.normal(size=count)
    y = rng.normal() + rng.normal(0, 2) * x + noise * rng.normal(size=count)
    data = {"w": w, "y": y, "wide": wide, "blur": blur, "noise": noise}
    narrow = 1 / (1 / wide**2 + 1 / blur**2)
    near = narrow * w / blur**2

    def conditional(slope):
        total = noise**2 + slope[:, 0] ** 2 * narrow
        rest = y - slope * near
        precision = 0.04 + count / total
        level = rest.sum(axis=1) / total / precision
        height = 0.5 * precision * level**2 - 0.5 * np.sum(rest**2, axis=1) / total
        height -= 0.5 * (count * np.log(total) + np.log(precision))
        inside = 1 / (1 / narrow + slope**2 / noise**2)
        mean = inside * (near / narrow + slope * (y - level[:, None]) / noise**2)
        variance = inside + (inside * slope / noise**2) ** 2 / precision[:, None]
        variance = np.broadcast_to(variance, mean.shape)
        others = np.column_stack([level, mean])
        spreads = np.column_stack([1 / precision, variance])
        return height - 0.02 * slope[:, 0] ** 2, others, spreads

    inner = {"level": (), "x": (count,)}
    outer = {"slope": (-40.0, 40.0)}
    return nested(_measurement_error, outer, inner, data, conditional, 1501)


def _factor(theta, data):
    rest = (data["y"] - jnp.outer(theta["score"], theta["load"])) / data["unit"]
    prior = jnp.sum(theta["score"] ** 2) + jnp.sum((theta["load"] / data["wide"]) ** 2)
    return -0.5 * (jnp.sum(rest**2) + prior)


def factor(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Three measurements of a hidden score, whose sign nobody knows."""
    count, unit = (5, 10, 20)[seed % 3], 10 ** rng.uniform(-2, 2)
    load = rng.uniform(0.8, 2.0, 3) * rng.choice([-1, 1], 3)
    z = np.outer(rng.normal(size=count), load) + rng.normal(size=(count, 3))
    data = {"y": unit * z, "unit": unit, "wide": 1.5 * unit}

    def conditional(u):
        load = u / unit
        size = 1 + np.sum(load**2, axis=1)
        along = load @ z.T
        height = 0.5 * np.sum(along**2, axis=1) / size - 0.5 * count * np.log(size)
        height -= 0.5 * np.sum((load / 1.5) ** 2, axis=1)
        score = along / size[:, None]
        return height, score, np.broadcast_to(1 / size[:, None], score.shape)

    outer = {"load": (np.full(3, -9 * unit), np.full(3, 9 * unit))}
    return nested(_factor, outer, {"score": (count,)}, data, conditional, 61)


def _horseshoe(theta, data):
    local = theta["log_local"]
    z = theta["b"] / data["unit"] * jnp.exp(-local)
    rest = (data["y"] - theta["b"]) / data["sd"]
    rows = -0.5 * (z**2 + rest**2) - local
    # The prior of a local scale is half-Cauchy.
    spread = local - data["log_global"]
    return jnp.sum(rows + spread - jax.nn.softplus(2 * spread))


def horseshoe(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Effects with half-Cauchy scales of their own, a few of them large."""
    count, unit = (2, 5, 12)[seed % 3], 10 ** rng.uniform(-2, 2)
    effect = np.where(rng.uniform(size=count) < 0.4, rng.normal(0, 5, count), 0.0)
    sd = unit * rng.uniform(0.5, 1.5, count)
    y = unit * effect + sd * rng.normal(size=count)
    log_global = np.log(rng.uniform(0.1, 0.6))
    data = {"y": y, "sd": sd, "unit": unit, "log_global": log_global}
    local = np.linspace(-45, 30, 15001)[:, None]
    inner = unit**2 * np.exp(2 * local)
    total = inner + sd**2
    height = local - log_global - np.logaddexp(0, 2 * (local - log_global))
    weights = special.softmax(height - 0.5 * (np.log(total) + y**2 / total), axis=0)
    pull = inner / total
    mean = np.sum(weights * pull * y, axis=0)
    within = np.sum(weights * (pull * sd**2 + (pull * y - mean) ** 2), axis=0)
    middle = np.sum(weights * local, axis=0)
    spread = np.sum(weights * (local - middle) ** 2, axis=0)
    target = density(_horseshoe, {"b": (count,), "log_local": (count,)}, data)
    means = {"b": mean, "log_local": middle}
    return from_moments(target, means, {"b": within, "log_local": spread}, "quadrature")
