"""More generalised linear models: answers by importance sampling."""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import importance_moments


def _negative_binomial(linear, data, xp):
    size = data["size"]
    return data["y"] * linear - (data["y"] + size) * xp.logaddexp(xp.log(size), linear)


def _gamma(linear, data, xp):
    return -data["shape"] * (linear + data["y"] * xp.exp(-linear))


def _weibull(linear, data, xp):
    # Censored rows have only the survival function.
    z = data["shape"] * (data["log_y"] - linear)
    return data["seen"] * z - xp.exp(z)


def _ordinal(linear, data, xp):
    upper = 1 / (1 + xp.exp(-(data["upper"] - linear)))
    lower = 1 / (1 + xp.exp(-(data["lower"] - linear)))
    return xp.log(upper - lower + 1e-30)


def _cloglog(linear, data, xp):
    rate = xp.exp(linear)
    return data["y"] * xp.log(-xp.expm1(-rate)) - (1 - data["y"]) * rate


def _inflated(linear, data, xp):
    share = data["share"]
    log_rate = xp.log1p(-share) - xp.exp(linear)
    none = xp.logaddexp(xp.log(share), log_rate)
    return xp.where(data["y"] == 0, none, log_rate + data["y"] * linear)


def _log_cosh(linear, data, xp):
    z = (data["y"] - linear) / data["scale"]
    return -2 * (xp.abs(z) + xp.log1p(xp.exp(-2 * xp.abs(z))))


def _comparison(linear, data, xp):
    return data["y"] * linear - xp.logaddexp(0.0, linear)


def _log_prob(term: Callable, beta, data, xp=jnp):
    rows = term(beta @ data["x"].T, data, xp).sum(axis=-1)
    return rows - 0.5 * ((beta / data["prior_sd"]) ** 2).sum(axis=-1)


def _uneven(x, data, xp=jnp):
    """Mean and log noise are both linear."""
    size = data["x"].shape[1]
    linear = x[..., :size] @ data["x"].T
    log_sd = x[..., size:] @ data["x"].T
    z = (data["y"] - linear) * xp.exp(-log_sd)
    rows = -0.5 * z**2 - log_sd
    return rows.sum(axis=-1) - 0.5 * ((x / data["prior_sd"]) ** 2).sum(axis=-1)


@functools.cache
def _density(term):
    """The log density for a term: one function, so that programs are shared."""
    return lambda theta, data: _log_prob(term, theta["beta"], data)


def _uneven_density(theta, data):
    return _uneven(theta["beta"], data)


def _answer(rng, function, log_prob, size: int, data: dict, scale) -> RandomPosterior:
    """Moments in standard units, the posterior in raw ones."""
    mean, variance = importance_moments(rng, function, np.zeros(size))
    target = density(log_prob, {"beta": (size,)}, data)
    right = {"beta": mean / scale}, {"beta": variance / scale**2}
    return from_moments(target, *right, "importance sampling")


def _regression(rng, term, z, data: dict, prior_sd, raw=True):
    size = z.shape[1]
    scale = np.append(1.0, 10 ** rng.uniform(-3, 3, size - 1)) if raw else np.ones(size)
    standard = {**data, "x": z, "prior_sd": prior_sd}
    observed = {**data, "x": z * scale, "prior_sd": prior_sd / scale}
    return _answer(
        rng,
        lambda beta: _log_prob(term, beta, standard, np),
        _density(term),
        size,
        observed,
        scale,
    )


def _design(rng, rows: int, size: int) -> np.ndarray:
    return np.column_stack([np.ones(rows), rng.normal(size=(rows, size - 1))])


def negative_binomial(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Overdispersed counts."""
    z = _design(rng, *((40, 3), (100, 8))[seed % 2])
    rate = np.exp(z @ np.append(rng.uniform(0, 3), rng.normal(0, 0.4, z.shape[1] - 1)))
    size = rng.uniform(0.5, 5)
    y = rng.poisson(rate * rng.gamma(size, 1 / size, len(z))).astype(float)
    data = {"y": y, "size": size}
    return _regression(rng, _negative_binomial, z, data, 4.0)


def gamma_times(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Gamma regression of durations."""
    z = _design(rng, *((20, 2), (80, 6))[seed % 2])
    shape = rng.uniform(0.5, 6)
    linear = z @ np.append(rng.uniform(-4, 4), rng.normal(0, 0.6, z.shape[1] - 1))
    y = rng.gamma(shape, np.exp(linear) / shape)
    return _regression(rng, _gamma, z, {"y": y, "shape": shape}, 8.0)


def censored(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Weibull survival times, a third of them censored."""
    z = _design(rng, *((25, 2), (90, 5))[seed % 2])
    shape = rng.uniform(0.7, 3)
    linear = z @ np.append(rng.uniform(-2, 2), rng.normal(0, 0.5, z.shape[1] - 1))
    time = np.exp(linear) * rng.weibull(shape, len(z))
    limit = np.exp(linear) * rng.weibull(shape, len(z)) * 1.7
    seen = (time < limit).astype(float)
    data = {"log_y": np.log(np.minimum(time, limit)), "seen": seen, "shape": shape}
    return _regression(rng, _weibull, z, data, 5.0)


def ordinal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Five ordered answers with known cut points."""
    z = rng.normal(size=((60, 3), (150, 7))[seed % 2])
    cuts = np.array([-30.0, -1.5, -0.5, 0.5, 1.5, 30.0])
    latent = z @ rng.normal(0, 0.8, z.shape[1]) + rng.logistic(size=len(z))
    level = np.searchsorted(cuts[1:-1], latent)
    data = {"lower": cuts[level], "upper": cuts[level + 1]}
    return _regression(rng, _ordinal, z, data, 3.0, raw=False)


def rare_events(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Binary outcomes with the complementary log-log link."""
    z = _design(rng, *((50, 2), (150, 5))[seed % 2])
    linear = z @ np.append(rng.uniform(-1.5, 0.5), rng.normal(0, 0.5, z.shape[1] - 1))
    y = (rng.uniform(size=len(z)) < -np.expm1(-np.exp(linear))).astype(float)
    return _regression(rng, _cloglog, z, {"y": y}, 2.0)


def inflated_counts(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts with too many zeros."""
    z = _design(rng, *((40, 3), (120, 6))[seed % 2])
    share = rng.uniform(0.1, 0.5)
    rate = np.exp(z @ np.append(rng.uniform(0, 2), rng.normal(0, 0.3, z.shape[1] - 1)))
    y = np.where(rng.uniform(size=len(z)) < share, 0, rng.poisson(rate)).astype(float)
    return _regression(rng, _inflated, z, {"y": y, "share": share}, 3.0)


def heavy_noise(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression with hyperbolic-secant noise and a few gross errors."""
    z = _design(rng, *((20, 2), (60, 6))[seed % 2])
    noise = rng.standard_t(1.5, len(z))
    data = {"y": z @ rng.normal(0, 4, z.shape[1]) + noise, "scale": 1.0}
    return _regression(rng, _log_cosh, z, data, 20.0)


def tournament(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Strengths of players from paired games."""
    players, games = ((5, 30), (10, 80), (16, 200))[seed % 3]
    pairs = np.array([rng.choice(players, 2, replace=False) for _ in range(games)])
    eye = np.eye(players)
    z = eye[pairs[:, 0]] - eye[pairs[:, 1]]
    y = (rng.uniform(size=games) < special.expit(z @ rng.normal(size=players))) * 1.0
    return _regression(rng, _comparison, z, {"y": y}, 1.5, False)


def wide_logistic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression with 15 or 25 predictors and a tight prior."""
    rows, size = ((120, 15), (200, 25))[seed % 2]
    z = _design(rng, rows, size)
    y = (rng.uniform(size=rows) < special.expit(z @ rng.normal(0, 0.5, size))) * 1.0
    return _regression(rng, _comparison, z, {"y": y}, 0.7, False)


def uneven_noise(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression in which the log of the noise is linear, too."""
    rows, size = ((40, 2), (120, 4))[seed % 2]
    z = _design(rng, rows, size)
    log_sd = z @ rng.normal(0, 0.4, size)
    y = z @ rng.normal(0, 2, size) + np.exp(log_sd) * rng.normal(size=rows)
    data = {"x": z, "y": y, "prior_sd": np.repeat([10.0, 1.0], size)}
    return _answer(
        rng, lambda x: _uneven(x, data, np), _uneven_density, 2 * size, data, 1.0
    )
