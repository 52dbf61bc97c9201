"""Generalised linear models: answers by importance sampling in standard units."""

from collections.abc import Callable

import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import importance_moments


def _logistic(linear, data, xp):
    return data["y"] * linear - xp.logaddexp(0.0, linear)


def _poisson(linear, data, xp):
    return data["y"] * linear - xp.exp(linear)


def _binomial(linear, data, xp):
    return data["y"] * linear - data["trials"] * xp.logaddexp(0.0, linear)


def _probit(linear, data, xp):
    ndtr = jsp.log_ndtr if xp is jnp else special.log_ndtr
    return ndtr((2 * data["y"] - 1) * linear)


def _exponential(linear, data, xp):
    return -linear - data["y"] * xp.exp(-linear)


def _student(linear, data, xp):
    return -2.5 * xp.log1p((data["y"] - linear) ** 2 / 4)


def _log_prob(term: Callable, theta, data, xp=jnp):
    """Log density; ``theta`` may have leading axes."""
    beta = theta["beta"]
    rows = term(beta @ data["x"].T, data, xp).sum(axis=-1)
    return rows - 0.5 * ((beta / data["prior_sd"]) ** 2).sum(axis=-1)


def _logistic_density(theta, data):
    return _log_prob(_logistic, theta, data)


def _poisson_density(theta, data):
    return _log_prob(_poisson, theta, data)


def _binomial_density(theta, data):
    return _log_prob(_binomial, theta, data)


def _probit_density(theta, data):
    return _log_prob(_probit, theta, data)


def _exponential_density(theta, data):
    return _log_prob(_exponential, theta, data)


def _student_density(theta, data):
    return _log_prob(_student, theta, data)


def _design(rng, rows: int, size: int) -> np.ndarray:
    return np.column_stack([np.ones(rows), rng.normal(size=(rows, size - 1))])


def _answer(rng, term, log_prob, z, data: dict, prior_sd: float, raw: bool):
    """The posterior in raw units, from moments found in standard ones."""
    size = z.shape[1]
    scale = np.append(1.0, 10 ** rng.uniform(-3, 3, size - 1)) if raw else np.ones(size)
    standard = {**data, "x": z, "prior_sd": prior_sd}

    def standard_log_prob(beta):
        return _log_prob(term, {"beta": beta}, standard, np)

    mean, variance = importance_moments(rng, standard_log_prob, np.zeros(size))
    observed = {**data, "x": z * scale, "prior_sd": prior_sd / scale}
    target = density(log_prob, {"beta": (size,)}, observed)
    right = {"beta": mean / scale}, {"beta": variance / scale**2}
    return from_moments(target, *right, "importance sampling")


def _bernoulli(rng, linear) -> np.ndarray:
    return (rng.uniform(size=linear.shape) < special.expit(linear)).astype(float)


def logistic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression with predictors in raw units."""
    rows, size = ((60, 2), (150, 5), (200, 8))[seed % 3]
    z = _design(rng, rows, size)
    y = _bernoulli(rng, z @ rng.normal(0, 1, size))
    return _answer(rng, _logistic, _logistic_density, z, {"y": y}, 5.0, raw=True)


def logistic_small(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression with three parameters and thirty rows."""
    z = _design(rng, 30, 3)
    y = _bernoulli(rng, z @ rng.normal(0, 1.5, 3))
    return _answer(rng, _logistic, _logistic_density, z, {"y": y}, 2.5, raw=False)


def separated(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression whose classes are separated: the prior holds the scale."""
    size = (2, 4)[seed % 2]
    z = _design(rng, 20, size)
    y = (z @ rng.normal(0, 1, size) > 0).astype(float)
    return _answer(rng, _logistic, _logistic_density, z, {"y": y}, 3.0, raw=False)


def poisson(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Poisson regression with predictors in raw units, rare or frequent counts."""
    rows, size = ((40, 3), (120, 6))[seed % 2]
    z = _design(rng, rows, size)
    beta = np.append(rng.uniform(-1, 4), rng.normal(0, 0.3, size - 1))
    y = rng.poisson(np.exp(z @ beta)).astype(float)
    return _answer(rng, _poisson, _poisson_density, z, {"y": y}, 5.0, raw=True)


def binomial(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Binomial regression of few doses with many trials each."""
    z = np.column_stack([np.ones(6), np.linspace(-1, 1, 6)])
    trials = rng.integers(5, 200, 6).astype(float)
    linear = z @ rng.normal(0, 2, 2)
    y = rng.binomial(trials.astype(int), special.expit(linear)).astype(float)
    data = {"y": y, "trials": trials}
    return _answer(rng, _binomial, _binomial_density, z, data, 10.0, raw=True)


def probit(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Probit regression."""
    rows, size = ((50, 3), (150, 7))[seed % 2]
    z = _design(rng, rows, size)
    y = (z @ rng.normal(0, 0.7, size) + rng.normal(size=rows) > 0).astype(float)
    return _answer(rng, _probit, _probit_density, z, {"y": y}, 3.0, raw=True)


def survival(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Exponential survival times in raw units."""
    rows, size = ((15, 2), (60, 5))[seed % 2]
    z = _design(rng, rows, size)
    beta = np.append(rng.uniform(-5, 5), rng.normal(0, 0.5, size - 1))
    y = rng.exponential(np.exp(z @ beta))
    return _answer(rng, _exponential, _exponential_density, z, {"y": y}, 10.0, raw=True)


def robust(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression with t noise of four degrees of freedom, outliers included."""
    rows, size = ((25, 2), (80, 5))[seed % 2]
    z = _design(rng, rows, size)
    y = z @ rng.normal(0, 3, size) + rng.standard_t(2, size=rows)
    return _answer(rng, _student, _student_density, z, {"y": y}, 20.0, raw=True)
