"""Outcomes behind unusual links: tables, pairs, and errors that are skewed."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from scipy import special, stats

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._outcomes import slopes
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._priors import around
from softcvi_experiments.verdict._weighed import weighed


def _excess_risk(theta, data):
    more = jnp.log1p(jnp.exp(theta["log_excess"]) * data["dose"])
    log_mean = jnp.log(data["years"]) + theta["log_base"] + more
    rows = data["y"] * log_mean - jnp.exp(log_mean)
    return jnp.sum(rows) + around(
        theta, log_base=(-7, 2), log_excess=(data["guess"], 2)
    )


def excess_risk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Deaths by dose of radiation, which adds to the risk and does not multiply it."""
    unit, years = 10 ** rng.uniform(-1, 3), rng.uniform(2e3, 2e4, 7)
    dose = np.append(0.0, np.sort(rng.exponential(1.0, 6)))
    y = rng.poisson(years * np.exp(-6.5) * (1 + rng.uniform(0, 1) * dose))
    data = {"dose": unit * dose, "years": years, "y": y, "guess": -np.log(unit)}
    low, high = -np.log(unit) - 16, -np.log(unit) + 12
    box = {"log_base": (-22.0, 5.0), "log_excess": (low, high)}
    return latticed(_excess_risk, box, data, 601)


def _uneven_link(theta, data):
    log_l, linear = theta["log_bend"], theta["level"] + theta["slope"] * data["x"]
    none = -jnp.exp(-log_l) * jax.nn.softplus(log_l + linear)
    some = jnp.log(-jnp.expm1(none))
    rows = data["y"] * some + (data["n"] - data["y"]) * none
    prior = around(theta, level=(0, 2), slope=(0, data["prior_sd"]), log_bend=(0, 1))
    return jnp.sum(rows) + prior


def uneven_link(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Beetles killed by a gas, with a link of unknown skewness (Aranda-Ordaz)."""
    unit, x = 10 ** rng.uniform(-2, 2), np.linspace(-1.5, 1.5, 7)
    y = rng.binomial(12, -np.expm1(-np.exp(rng.normal(0, 0.4) + 1.5 * x)))
    data = {"x": unit * x, "n": 12.0, "y": y, "prior_sd": 3 / unit}
    shapes = dict.fromkeys(("level", "slope", "log_bend"), ())
    return weighed(rng, _uneven_link, shapes, data, {"slope": 1 / unit})


def _odds_of_tables(theta, data):
    log_odds = theta["level"] + theta["trend"] * data["year"]
    terms = data["ways"] + data["k"] * log_odds[:, None]
    rows = data["y"] * log_odds - logsumexp(terms, axis=1)
    return jnp.sum(rows) + around(theta, level=(0, 2), trend=(0, data["prior_sd"]))


def odds_of_tables(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Tables of two by two with all margins fixed, over the years."""
    one, two = rng.integers(3, 9, (2, 9))
    unit, year = 10 ** rng.uniform(-1, 1), np.linspace(-1, 1, 9)
    odds = rng.normal(0.5, 0.8) + rng.normal(0, 0.8) * year
    y = rng.binomial(one, special.expit(odds - 0.5))
    total = y + rng.binomial(two, special.expit(-0.5))
    k = np.arange(9.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ways = np.log(special.binom(one[:, None], k))
        ways += np.log(special.binom(two[:, None], total[:, None] - k))
    # A large negative number where a table is impossible keeps gradients finite.
    ways = np.where(np.isfinite(ways), ways, -1e6)
    data = {"ways": ways, "k": k, "y": y, "year": unit * year, "prior_sd": 2 / unit}
    box = {"level": (-14.0, 14.0), "trend": (-14 / unit, 14 / unit)}
    return latticed(_odds_of_tables, box, data, 201)


def _matched_cases(theta, data):
    linear = data["x"] @ theta["beta"]
    rows = linear[:, 0] - logsumexp(linear, axis=1)
    return jnp.sum(rows) + around(theta, beta=(0, data["prior_sd"]))


def matched_cases(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Each patient beside three controls of the same age."""
    unit, beta = 10 ** rng.uniform(-4, 4, 4), slopes(rng, 4, 1.0)
    z = rng.normal(size=(25, 4, 4))
    first = np.argmax(z @ beta + rng.gumbel(size=(25, 4)), axis=1)
    z = np.stack([np.roll(rows, -k, axis=0) for rows, k in zip(z, first, strict=True)])
    data = {"x": z / unit, "prior_sd": 2 * unit}
    return weighed(rng, _matched_cases, {"beta": (4,)}, data, {"beta": unit})


def _skewed_errors(theta, data):
    z = (data["y"] - theta["place"]) * jnp.exp(-theta["log_scale"])
    rows = -0.5 * z**2 + log_ndtr(theta["skew"] * z) - theta["log_scale"]
    unit, log_unit = data["unit"], jnp.log(data["unit"])
    prior = around(theta, place=(0, 5 * unit), log_scale=(log_unit, 1), skew=(0, 3))
    return jnp.sum(rows) + prior


def skewed_errors(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Skew normal readings: with few of them, skewed to one side or the other."""
    unit = 10 ** rng.uniform(-1, 2)
    y = unit * stats.skewnorm.rvs(3.0, loc=rng.normal(), size=18, random_state=rng)
    low, high = np.log(unit) - 3, np.log(unit) + 3
    box = {"place": (-6 * unit, 6 * unit), "log_scale": (low, high)}
    return latticed(
        _skewed_errors,
        box | {"skew": (-15.0, 15.0)},
        {"y": y, "unit": unit},
        91,
    )


def _alike_predictors(theta, data):
    z = (data["y"] - data["x"] @ theta["beta"]) * jnp.exp(-theta["log_scale"])
    rows = -z - 2 * jax.nn.softplus(-z) - theta["log_scale"]
    prior = around(theta, beta=(0, data["prior_sd"]), log_scale=(0, 1))
    return jnp.sum(rows) + prior


def alike_predictors(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic noise around a line of six predictors that are nearly the same."""
    z = np.column_stack([np.ones(50), rng.normal(size=(50, 1)) + np.zeros((50, 6))])
    z[:, 1:] += 0.05 * rng.normal(size=(50, 6))
    unit = 10 ** rng.uniform(-2, 2, 7)
    y = z @ rng.normal(size=7) + 0.7 * rng.logistic(size=50)
    data = {"x": z / unit, "y": y, "prior_sd": 3 * unit}
    shapes = {"beta": (7,), "log_scale": ()}
    return weighed(rng, _alike_predictors, shapes, data, {"beta": unit})
