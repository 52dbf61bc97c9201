"""Regressions with other noise, links and gaps in the data: importance sampling."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, gammaln, log_ndtr, logsumexp, ndtr

from softcvi_experiments.verdict._lattice import latticed
from softcvi_experiments.verdict._posterior import RandomPosterior
from softcvi_experiments.verdict._weighed import normal_prior, raw_design, weighed


def _slopes(rng, size: int, first: float, sd: float = 0.5) -> np.ndarray:
    return np.append(first, rng.normal(0, sd, size - 1))


def _inverse_gaussian(theta, data):
    mean, log_shape = jnp.exp(data["x"] @ theta["beta"]), theta["log_shape"]
    rest = (data["y"] - mean) ** 2 / (mean**2 * data["y"])
    rows = 0.5 * log_shape - 0.5 * jnp.exp(log_shape) * rest
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior - 0.5 * (log_shape / 2) ** 2


def inverse_gaussian(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times to reach a level, inverse Gaussian with a log link."""
    rows, size = ((25, 2), (80, 5), (150, 9))[seed % 3]
    z, x, unit = raw_design(rng, rows, size, 4.0)
    mean = np.exp(z @ _slopes(rng, size, rng.normal(), 0.3))
    y = rng.wald(mean, mean * rng.uniform(2, 8))
    data = {"x": x, "y": y, "prior_sd": 4 * unit}
    shapes = {"beta": (size,), "log_shape": ()}
    return weighed(rng, _inverse_gaussian, shapes, data, {"beta": unit})


def _quantile(theta, data):
    rest = (data["y"] - data["x"] @ theta["beta"]) * jnp.exp(-theta["log_sd"])
    rows = rest * (data["share"] - (rest < 0)) + theta["log_sd"]
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return prior - jnp.sum(rows) - 0.5 * (theta["log_sd"] - data["log_unit"]) ** 2


def quantile(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression of a quantile: asymmetric Laplace noise, with kinks."""
    rows, size = ((25, 2), (70, 4))[seed % 2]
    z, x, coefficient = raw_design(rng, rows, size, 3.0)
    unit = 10 ** rng.uniform(-3, 3)
    y = unit * (z @ rng.normal(0, 1, size) + rng.gumbel(size=rows))
    sd = 5 * unit * coefficient
    data = {"x": x, "y": y, "prior_sd": sd, "log_unit": np.log(unit)}
    data["share"] = rng.choice([0.1, 0.5, 0.75])
    shapes = {"beta": (size,), "log_sd": ()}
    middle = {"log_sd": np.log(unit)}
    return weighed(rng, _quantile, shapes, data, {"beta": unit * coefficient}, middle)


def _student(theta, data):
    df, log_sd = jnp.exp(theta["log_df"]), theta["log_sd"]
    z = (data["y"] - data["x"] @ theta["beta"]) * jnp.exp(-log_sd)
    rows = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * jnp.log(df) - log_sd
    rows -= 0.5 * (df + 1) * jnp.log1p(z**2 / df)
    prior = normal_prior(theta["beta"], data["prior_sd"])
    hyper = (log_sd - data["log_unit"]) ** 2 + (theta["log_df"] - 1.5) ** 2
    return jnp.sum(rows) + prior - 0.5 * hyper


def student_noise(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Regression with t noise, its degrees of freedom and scale unknown."""
    rows, size = ((30, 2), (60, 4), (120, 8))[seed % 3]
    z, x, coefficient = raw_design(rng, rows, size, 3.0)
    unit = 10 ** rng.uniform(-4, 4)
    y = unit * (z @ rng.normal(0, 2, size) + rng.standard_t(rng.uniform(2, 8), rows))
    sd = 8 * unit * coefficient
    data = {"x": x, "y": y, "prior_sd": sd, "log_unit": np.log(unit)}
    shapes = {"beta": (size,), "log_sd": (), "log_df": ()}
    middle = {"log_sd": np.log(unit), "log_df": 1.5}
    return weighed(rng, _student, shapes, data, {"beta": unit * coefficient}, middle)


def _separated(theta, data):
    linear = data["x"] @ theta["beta"]
    rows = data["y"] * linear - jax.nn.softplus(linear)
    z = theta["beta"] / data["prior_sd"]
    return jnp.sum(rows) - 4 * jnp.sum(jnp.log1p(z**2 / 7))


def weak_prior_separated(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logistic regression on separable data with a t prior of 7 degrees of freedom."""
    rows, size = ((12, 2), (20, 3), (30, 4))[seed % 3]
    z, x, unit = raw_design(rng, rows, size, 2.0)
    y = z @ np.append(0.3, rng.normal(0, 1, size - 1)) > 0
    data = {"x": x, "y": y, "prior_sd": 2.5 * unit}
    return weighed(rng, _separated, {"beta": (size,)}, data, {"beta": unit})


def _selection(theta, data):
    chosen = data["z"] @ theta["select"]
    rest = (data["y"] - data["x"] @ theta["beta"]) * jnp.exp(-theta["log_sd"])
    rho = jnp.tanh(theta["link"])
    shifted = (chosen + rho * rest) / jnp.sqrt(1 - rho**2 + 1e-9)
    seen = log_ndtr(shifted) - 0.5 * rest**2 - theta["log_sd"]
    rows = jnp.where(data["seen"] > 0, seen, log_ndtr(-chosen))
    prior = normal_prior(theta["select"], 2.0) + normal_prior(theta["beta"], 5.0)
    return jnp.sum(rows) + prior - 0.5 * (theta["link"] ** 2 + theta["log_sd"] ** 2)


def selection(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Wages that are seen only of those who work, with correlated errors."""
    rows = (60, 150)[seed % 2]
    x = np.column_stack([np.ones(rows), rng.normal(size=rows)])
    z = np.column_stack([x, rng.normal(size=rows)])
    rho = rng.uniform(-0.8, 0.8)
    u, v = rng.normal(size=(2, rows))
    seen = z @ np.append(rng.uniform(0, 0.8), rng.normal(0, 0.7, 2)) + u > 0
    y = x @ rng.normal(0, 2, 2) + rho * u + np.sqrt(1 - rho**2) * v
    data = {"x": x, "z": z, "y": np.where(seen, y, 0.0), "seen": seen}
    shapes = {"select": (3,), "beta": (2,), "log_sd": (), "link": ()}
    return weighed(rng, _selection, shapes, data, {})


def _intervals(theta, data):
    linear, scale = data["x"] @ theta["beta"], jnp.exp(-theta["log_sd"])
    low, high = (data["low"] - linear) * scale, (data["high"] - linear) * scale
    right = low > 0
    share = ndtr(jnp.where(right, -low, high)) - ndtr(jnp.where(right, -high, low))
    prior = normal_prior(theta["beta"], data["prior_sd"])
    hyper = 0.5 * (theta["log_sd"] - data["log_unit"]) ** 2
    return jnp.sum(jnp.log(share + 1e-20)) + prior - hyper


def income_classes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A regression whose outcome is known to classes only."""
    rows, size = ((40, 2), (100, 5))[seed % 2]
    z, x, coefficient = raw_design(rng, rows, size, 3.0)
    unit = 10 ** rng.uniform(-2, 4)
    y = unit * (z @ rng.normal(0, 1, size) + rng.normal(size=rows))
    cuts = np.concatenate([[-40 * unit], np.quantile(y, [0.2, 0.5, 0.7]), [40 * unit]])
    level = np.searchsorted(cuts[1:-1], y)
    data = {
        "x": x,
        "low": cuts[level],
        "high": cuts[level + 1],
        "prior_sd": 4 * unit * coefficient,
        "log_unit": np.log(unit),
    }
    shapes = {"beta": (size,), "log_sd": ()}
    middle = {"log_sd": np.log(unit)}
    return weighed(rng, _intervals, shapes, data, {"beta": unit * coefficient}, middle)


def _rounded(theta, data):
    scale = jnp.exp(-theta["log_sd"])
    low = (data["y"] - 0.5 * data["step"] - theta["mean"]) * scale
    high = (data["y"] + 0.5 * data["step"] - theta["mean"]) * scale
    right = low > 0
    share = ndtr(jnp.where(right, -low, high)) - ndtr(jnp.where(right, -high, low))
    prior = ((theta["mean"] - data["guess"]) / (5 * data["step"])) ** 2
    hyper = (theta["log_sd"] - jnp.log(data["step"])) ** 2
    return jnp.sum(jnp.log(share + 1e-20)) - 0.5 * (prior + hyper)


def rounded(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Mean and spread of few readings, rounded more coarsely than they vary."""
    step = 10 ** rng.uniform(-2, 2)
    place = step * rng.normal(0, 5)
    y = step * np.round(rng.normal(place / step, rng.uniform(0.2, 0.6), 6))
    data = {"y": y, "step": step, "guess": place + step * rng.normal()}
    middle = np.log(step)
    box = {
        "mean": (y.min() - 25 * step, y.max() + 25 * step),
        "log_sd": (middle - 8.0, middle + 5.0),
    }
    return latticed(_rounded, box, data, 401)


def _adjacent(theta, data):
    steps = theta["step"] + (data["x"] @ theta["beta"])[:, None]
    heights = jnp.cumsum(steps, axis=1)
    heights = jnp.concatenate([jnp.zeros_like(heights[:, :1]), heights], axis=1)
    rows = jnp.sum(data["y"] * heights, axis=1) - logsumexp(heights, axis=1)
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior + normal_prior(theta["step"], 2.0)


def adjacent_categories(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ordered answers whose neighbours are compared in pairs."""
    rows, size, levels = ((50, 1, 3), (120, 4, 5))[seed % 2]
    x = rng.normal(size=(rows, size)) * (scale := 10 ** rng.uniform(-3, 3, size))
    linear = (x / scale) @ rng.normal(0, 0.6, size)
    heights = linear[:, None] * np.arange(levels) + rng.normal(0, 0.5, levels)
    y = np.eye(levels)[np.argmax(heights + rng.gumbel(size=heights.shape), axis=1)]
    data = {"x": x, "y": y, "prior_sd": 2 / scale}
    shapes = {"beta": (size,), "step": (levels - 1,)}
    return weighed(rng, _adjacent, shapes, data, {"beta": 1 / scale})


def _litters(theta, data):
    share = jax.nn.sigmoid(data["x"] @ theta["beta"])
    size = jnp.exp(theta["log_size"])
    a, b = size * share, size * (1 - share)
    rows = betaln(data["y"] + a, data["n"] - data["y"] + b) - betaln(a, b)
    prior = normal_prior(theta["beta"], data["prior_sd"])
    return jnp.sum(rows) + prior - 0.5 * ((theta["log_size"] - 1.5) / 1.0) ** 2


def litters(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Deaths in litters that differ more than chance allows."""
    rows, size = ((20, 2), (60, 4))[seed % 2]
    z, x, unit = raw_design(rng, rows, size, 3.0)
    share = 1 / (1 + np.exp(-z @ _slopes(rng, size, rng.normal())))
    n, strength = rng.integers(4, 15, rows), rng.uniform(2, 10)
    y = rng.binomial(n, rng.beta(strength * share, strength * (1 - share)))
    data = {"x": x, "y": y, "n": n, "prior_sd": 2.5 * unit}
    shapes = {"beta": (size,), "log_size": ()}
    middle = {"log_size": 1.5}
    return weighed(rng, _litters, shapes, data, {"beta": unit}, middle)


def _rate_ratios(theta, data):
    linear = data["x"] @ theta["beta"]
    rows = data["y"] * linear - data["time"] * jnp.exp(linear)
    return jnp.sum(rows) + normal_prior(theta["beta"], data["prior_sd"])


def rate_ratios(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of cases over very different times at risk."""
    rows, size = ((15, 3), (60, 6), (200, 12))[seed % 3]
    z, x, unit = raw_design(rng, rows, size, 4.0)
    time = 10 ** rng.uniform(1, 5, rows)
    y = rng.poisson(time * np.exp(z @ _slopes(rng, size, -6.0, 0.4)))
    data = {"x": x, "y": y, "time": time, "prior_sd": np.append(10.0, 3 * unit[1:])}
    middle = {"beta": np.append(-6.0, np.zeros(size - 1))}
    return weighed(rng, _rate_ratios, {"beta": (size,)}, data, {"beta": unit}, middle)


def _inflated(theta, data):
    linear, size = data["x"] @ theta["beta"], jnp.exp(theta["log_size"])
    y = data["y"]
    total = jnp.logaddexp(theta["log_size"], linear)
    rows = gammaln(y + size) - gammaln(size) + size * (theta["log_size"] - total)
    rows += jax.nn.log_sigmoid(-theta["none"]) + y * (linear - total)
    none = jnp.logaddexp(jax.nn.log_sigmoid(theta["none"]), rows)
    prior = normal_prior(theta["beta"], data["prior_sd"]) - 0.5 * theta["log_size"] ** 2
    prior -= 0.5 * ((theta["none"] + 1) / 1.5) ** 2
    return jnp.sum(jnp.where(y == 0, none, rows)) + prior


def fishing(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Catches of visitors of whom some did not fish, and the others vary much."""
    rows, size = ((50, 2), (150, 4))[seed % 2]
    z, x, unit = raw_design(rng, rows, size, 3.0)
    strength = rng.uniform(0.7, 3)
    rate = np.exp(z @ _slopes(rng, size, rng.uniform(0.5, 2)))
    y = rng.poisson(rate * rng.gamma(strength, 1 / strength, rows))
    y = y * (rng.uniform(size=rows) > rng.uniform(0.1, 0.5))
    data = {"x": x, "y": y, "prior_sd": 3 * unit}
    shapes = {"beta": (size,), "log_size": (), "none": ()}
    middle = {"none": -1.0}
    return weighed(rng, _inflated, shapes, data, {"beta": unit}, middle)
