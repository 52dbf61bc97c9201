"""Normal hierarchies: all but the spread of the groups is normal given that spread."""

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import normal_grid


def _hyper(theta, data):
    """Log prior of the location and of the log spread."""
    location = (theta["mu"] - data["mu_mean"]) / data["mu_sd"]
    spread = (theta["log_tau"] - data["log_tau_mean"]) / data["log_tau_sd"]
    return -0.5 * (location**2 + spread**2)


def _centred(theta, data):
    z = (theta["group"] - theta["mu"]) * jnp.exp(-theta["log_tau"])
    residual = (data["y"] - theta["group"]) / data["sd"]
    likelihood = -0.5 * jnp.sum(z**2 + residual**2) - z.size * theta["log_tau"]
    return likelihood + _hyper(theta, data)


def _non_centred(theta, data):
    z = theta["group"]
    residual = (data["y"] - theta["mu"] - jnp.exp(theta["log_tau"]) * z) / data["sd"]
    return -0.5 * jnp.sum(z**2 + residual**2) + _hyper(theta, data)


def _data(rng, count: int) -> dict:
    """Groups in raw units; the data say much or little about their spread."""
    unit = 10 ** rng.uniform(-2, 3)
    tau = unit * 10 ** rng.uniform(-0.7, 0.7)
    location = unit * rng.normal(0, 10)
    sd = unit * rng.uniform(0.3, 2.0, count)
    return {
        "y": location + tau * rng.normal(size=count) + sd * rng.normal(size=count),
        "sd": sd,
        "mu_mean": location + unit * rng.normal(0, 3),
        "mu_sd": 10 * unit,
        "log_tau_mean": np.log(unit) + rng.normal(0, 0.5),
        "log_tau_sd": 1.0,
    }


def _answer(data: dict, log_prob, precision_and_shift) -> RandomPosterior:
    """Integrate over the log spread; location and groups are normal given it."""
    count = len(data["y"])

    def log_marginal(log_tau: float):
        precision, shift, constant = precision_and_shift(data, np.exp(log_tau))
        covariance = np.linalg.inv(precision)
        mean = covariance @ shift
        height = 0.5 * (shift @ mean - np.linalg.slogdet(precision)[1]) + constant
        z = (log_tau - data["log_tau_mean"]) / data["log_tau_sd"]
        return height - 0.5 * z**2, mean, np.diag(covariance)

    middle = data["log_tau_mean"]
    one, others = normal_grid(log_marginal, middle - 7, middle + 7)
    shapes = {"group": (count,), "log_tau": (), "mu": ()}
    mean, variance = (
        {"group": values[1:], "log_tau": np.array(tau), "mu": np.array(values[0])}
        for values, tau in zip(others, one, strict=True)
    )
    target = density(log_prob, shapes, data)
    return from_moments(target, mean, variance, "quadrature")


def _centred_normal(data: dict, tau: float):
    """Precision, shift and constant of (location, groups) given the spread."""
    count = len(data["y"])
    precision = np.diag(np.append(0.0, 1 / data["sd"] ** 2 + 1 / tau**2))
    precision[0, 0] = 1 / data["mu_sd"] ** 2 + count / tau**2
    precision[0, 1:] = precision[1:, 0] = -1 / tau**2
    shift = np.append(data["mu_mean"] / data["mu_sd"] ** 2, data["y"] / data["sd"] ** 2)
    return precision, shift, -count * np.log(tau)


def _non_centred_normal(data: dict, tau: float):
    """The same where groups are in units of the spread."""
    weight = 1 / data["sd"] ** 2
    precision = np.diag(np.append(0.0, 1 + tau**2 * weight))
    precision[0, 0] = 1 / data["mu_sd"] ** 2 + weight.sum()
    precision[0, 1:] = precision[1:, 0] = tau * weight
    prior = data["mu_mean"] / data["mu_sd"] ** 2
    shift = np.append(prior + weight @ data["y"], tau * weight * data["y"])
    return precision, shift, 0.0


def centred(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Groups around a location, centred."""
    return _answer(_data(rng, (5, 12)[seed % 2]), _centred, _centred_normal)


def non_centred(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Groups around a location, in units of their spread."""
    return _answer(_data(rng, (4, 8, 20)[seed % 3]), _non_centred, _non_centred_normal)


def centred_large(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Twenty to forty groups around a location, centred."""
    return _answer(_data(rng, (20, 40)[seed % 2]), _centred, _centred_normal)
