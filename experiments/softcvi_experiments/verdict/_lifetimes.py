"""Times until something happens, some of them censored: sampling and lattices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._weighed import normal_prior, raw_design, weighed


def _censor(rng, time: np.ndarray, low: float = 0.5):
    end = np.quantile(time, rng.uniform(low, 0.95))
    return np.minimum(time, end), (time < end).astype(float)


def _partial(theta, data):
    linear = data["x"] @ theta["beta"]
    at_risk = jnp.where(data["risk"] > 0, linear, -jnp.inf)
    rows = data["seen"] * (linear - logsumexp(at_risk, axis=1))
    return jnp.sum(rows) + normal_prior(theta["beta"], data["prior_sd"])


def proportional_hazards(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Cox's partial likelihood: only the order of the times counts."""
    rows, size = ((20, 2), (60, 4), (100, 9))[seed % 3]
    z = rng.normal(size=(rows, size))
    scale = 10 ** rng.uniform(-4, 4, size)
    time = rng.exponential(np.exp(-z @ rng.normal(0, 0.7, size)))
    time, seen = _censor(rng, time)
    risk = time[None, :] >= time[:, None]
    data = {"x": z * scale, "seen": seen, "risk": risk, "prior_sd": 2.0 / scale}
    return weighed(rng, _partial, {"beta": (size,)}, data, {"beta": 1 / scale})


def _pieces(theta, data):
    level = theta["level"]
    linear = data["x"] @ theta["beta"]
    hazard = data["deaths"] @ level + data["seen"] * linear
    rows = hazard - jnp.exp(linear) * (data["time"] @ jnp.exp(level))
    steps = jnp.diff(level) / 0.7
    smooth = -0.5 * jnp.sum(steps**2) - 0.5 * ((level[0] - data["guess"]) / 2) ** 2
    return jnp.sum(rows) + smooth + normal_prior(theta["beta"], data["prior_sd"])


def hazard_pieces(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A hazard that is constant in periods and drifts between them."""
    rows, size, periods = ((40, 1, 4), (120, 3, 8))[seed % 2]
    z = rng.normal(size=(rows, size))
    scale = 10 ** rng.uniform(-3, 3, size)
    unit = 10 ** rng.uniform(-2, 2)
    risk = np.exp(-z @ rng.normal(0, 0.5, size))
    time, seen = _censor(rng, unit * risk * rng.weibull(1.4, rows))
    ends = np.append(0.0, np.quantile(time, np.linspace(0, 1, periods + 1)[1:]))
    spent = np.clip(time[:, None] - ends[:-1], 0, np.diff(ends))
    place = np.searchsorted(ends[1:-1], time)
    data = {
        "x": z * scale,
        "time": spent,
        "deaths": np.eye(periods)[place] * seen[:, None],
        "seen": seen,
        "guess": -np.log(unit),
        "prior_sd": 2 / scale,
    }
    shapes = {"level": (periods,), "beta": (size,)}
    middle = {"level": -np.log(unit)}
    return weighed(rng, _pieces, shapes, data, {"beta": 1 / scale}, middle)


def _risks(theta, data):
    shape, level = theta["log_shape"], theta["level"]
    z = (data["log_time"][:, None] - level) * jnp.exp(shape)
    rows = data["cause"] * (shape + z - data["log_time"][:, None]) - jnp.exp(z)
    prior = ((level - data["guess"]) / 2) ** 2 + (shape / 0.7) ** 2
    return jnp.sum(rows) - 0.5 * jnp.sum(prior)


def competing_risks(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Machines that fail of one of several causes, whichever comes first."""
    rows, causes = ((30, 2), (90, 4))[seed % 2]
    unit = 10 ** rng.uniform(-3, 4)
    times = (
        unit
        * rng.uniform(0.7, 2.5, causes)
        * rng.weibull(rng.uniform(0.8, 3, causes), (rows, causes))
    )
    time, seen = _censor(rng, times.min(axis=1))
    cause = np.eye(causes)[times.argmin(axis=1)] * seen[:, None]
    data = {"log_time": np.log(time), "cause": cause, "guess": np.log(unit)}
    shapes = {"level": (causes,), "log_shape": (causes,)}
    middle = {"level": np.log(unit)}
    return weighed(rng, _risks, shapes, data, {}, middle)


def _cured(theta, data):
    shape = jnp.exp(theta["log_shape"])
    z = shape * (data["log_time"] - theta["level"])
    uncured = jax.nn.log_sigmoid(-theta["cured"]) - jnp.exp(z)
    event = uncured + theta["log_shape"] + z
    censored = jnp.logaddexp(jax.nn.log_sigmoid(theta["cured"]), uncured)
    rows = jnp.where(data["seen"] > 0, event, censored)
    prior = (theta["cured"] / 2) ** 2 + ((theta["level"] - data["guess"]) / 2) ** 2
    return jnp.sum(rows) - 0.5 * prior - 0.5 * (theta["log_shape"] / 0.7) ** 2


def cured(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Patients of whom some are cured: those, or a long tail of late deaths."""
    count = (15, 40)[seed % 2]
    guess = rng.normal(0, 2)
    time = np.exp(guess) * rng.weibull(rng.uniform(0.8, 2), count)
    time[rng.uniform(size=count) < rng.uniform(0.1, 0.5)] = np.inf
    end = np.exp(guess) * rng.uniform(0.8, 2)
    seen = time < end
    data = {
        "log_time": np.log(np.minimum(time, end)),
        "seen": seen,
        "guess": guess + 0.5 * rng.normal(),
    }
    box = {
        "level": (guess - 13.0, guess + 13.0),
        "log_shape": (-4.5, 4.0),
        "cured": (-13.0, 11.0),
    }
    return latticed(_cured, box, data, 61)


def _frail(theta, data):
    alike = jnp.exp(theta["log_alike"])
    linear = data["x"] @ theta["beta"]
    hazard = data["group"].T @ (data["time"] * jnp.exp(linear))
    deaths = data["deaths"]
    steps = gammaln(alike + deaths) - gammaln(alike)
    steps += alike * theta["log_alike"] - (alike + deaths) * jnp.log(alike + hazard)
    rows = data["seen"] * linear
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + jnp.sum(steps) + prior - 0.5 * theta["log_alike"] ** 2


def frailty(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Members of families who share a gamma frailty, which is summed out."""
    families, size = ((12, 2), (30, 4))[seed % 2]
    each = 4
    rows = families * each
    z, x, unit = raw_design(rng, rows, size, 3.0)
    group = np.repeat(np.eye(families), each, axis=0)
    alike = rng.uniform(1, 5)
    frail = group @ rng.gamma(alike, 1 / alike, families)
    time = rng.exponential(np.exp(-z @ rng.normal(0, 0.5, size)) / frail)
    time, seen = _censor(rng, time)
    data = {
        "x": x,
        "time": time,
        "seen": seen,
        "group": group,
        "deaths": group.T @ seen,
        "prior_sd": 2.5 * unit,
    }
    shapes = {"beta": (size,), "log_alike": ()}
    return weighed(rng, _frail, shapes, data, {"beta": unit})


def _log_logistic(theta, data):
    z = (data["log_time"] - data["x"] @ theta["beta"]) * jnp.exp(-theta["log_scale"])
    event = z - theta["log_scale"]
    rows = data["seen"] * event - (1 + data["seen"]) * jax.nn.softplus(z)
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior - 0.5 * (theta["log_scale"] + 0.5) ** 2


def accelerated_failure(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Log-logistic times to failure that predictors stretch."""
    rows, size = ((25, 2), (60, 4), (120, 8))[seed % 3]
    z, x, unit = raw_design(rng, rows, size, 4.0)
    log_time = z @ rng.normal(0, 1, size) + rng.uniform(0.2, 1) * rng.logistic(
        size=rows
    )
    time, seen = _censor(rng, np.exp(log_time))
    data = {"x": x, "log_time": np.log(time), "seen": seen, "prior_sd": 5 * unit}
    shapes = {"beta": (size,), "log_scale": ()}
    return weighed(rng, _log_logistic, shapes, data, {"beta": unit})


def _entered_late(theta, data):
    shape = jnp.exp(theta["log_shape"])
    z, before = (shape * (data[n] - theta["level"]) for n in ("log_time", "log_entry"))
    rows = data["seen"] * (theta["log_shape"] + z) - jnp.exp(z) + jnp.exp(before)
    prior = ((theta["level"] - data["guess"]) / 2) ** 2 + theta["log_shape"] ** 2
    return jnp.sum(rows) - 0.5 * prior


def entered_late(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Weibull times of those only who lived until they were enrolled."""
    shape, guess = rng.uniform(0.7, 3), rng.normal(0, 3)
    entry = rng.uniform(0.2, 1.2, (25, 60)[seed % 2])
    time = (entry**shape + rng.exponential(size=entry.size)) ** (1 / shape)
    time, seen = _censor(rng, time)
    entry = np.minimum(entry, 0.999 * time)
    data = {
        "log_time": np.log(time) + guess,
        "log_entry": np.log(entry) + guess,
        "seen": seen,
        "guess": guess + rng.normal(),
    }
    box = {"level": (guess - 14, guess + 12), "log_shape": (-6.0, 5.0)}
    return latticed(_entered_late, box, data, 401)
