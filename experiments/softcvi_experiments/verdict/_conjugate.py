"""Conjugate models with exact answers, in raw units, and supports that data set."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from softcvi_experiments.verdict._posterior import (
    Moments,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 200_000


def _linear(theta, data):
    beta, log_sd = theta["beta"], theta["log_sd"]
    rest = data["y"] - data["x"] @ beta
    prior = (beta - data["prior_mean"]) / data["prior_sd"]
    total = jnp.sum(rest**2) + jnp.sum(prior**2) + 2 * data["scale"]
    count = rest.size + beta.size + 2 * data["shape"]
    return -count * log_sd - 0.5 * jnp.exp(-2 * log_sd) * total


def _linear_posterior(x, y, prior_mean, prior_sd, shape, scale) -> RandomPosterior:
    """Normal and inverse gamma: coefficients are t, the log spread is a log gamma."""
    # In units of the prior, for numbers of similar size.
    design, rest = x * prior_sd, y - x @ prior_mean
    factor = np.linalg.cholesky(design.T @ design + np.eye(x.shape[1]))
    covariance = np.linalg.inv(factor)
    covariance = covariance.T @ covariance
    middle = covariance @ (design.T @ rest)
    total = np.sum((rest - design @ middle) ** 2) + np.sum(middle**2)
    a, b = shape + y.size / 2, scale + 0.5 * total
    data = {
        "x": x,
        "y": y,
        "prior_mean": prior_mean,
        "prior_sd": prior_sd,
        "shape": shape,
        "scale": scale,
    }
    target = density(_linear, {"beta": middle.shape, "log_sd": ()}, data)
    log_sd = 0.5 * (np.log(b) - special.digamma(a))
    mean = {"beta": prior_mean + prior_sd * middle, "log_sd": log_sd}
    variance = {
        "beta": prior_sd**2 * np.diag(covariance) * b / (a - 1),
        "log_sd": 0.25 * special.polygamma(1, a),
    }
    return from_moments(target, mean, variance, "closed form")


def conjugate_line(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Mean, or many coefficients, with the noise unknown: normal-inverse-gamma."""
    rows, size = ((6, 1), (40, 15), (90, 60), (200, 120))[seed % 4]
    unit = 10 ** rng.uniform(-3, 3)
    coefficient = unit * 10 ** rng.uniform(-3, 3, size)
    z = rng.normal(size=(rows, size)) + 0.5 * rng.normal(size=(rows, 1))
    mean = coefficient * rng.normal(0, 3, size)
    x = z * unit / coefficient
    y = x @ (mean + coefficient * rng.normal(size=size)) + unit * rng.normal(size=rows)
    return _linear_posterior(x, y, mean, 2 * coefficient, 2.0, 2 * unit**2)


def year_trend(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A line over calendar years: intercept and slope all but one number."""
    year = np.arange(1990.0, (2004, 2021)[seed % 2])
    unit = 10 ** rng.uniform(-1, 2)
    slope = unit * rng.normal(0, 0.1)
    y = 20 * unit + slope * (year - 2000) + unit * rng.normal(size=year.size)
    x = np.column_stack([np.ones(year.size), year])
    return _linear_posterior(x, y, np.zeros(2), np.array([1e4, 10.0]), 1.0, unit**2)


def cubic_trend(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Powers of a raw predictor as columns: correlations near one."""
    t = np.sort(rng.uniform(5, 15, 40))
    size = (3, 4)[seed % 2]
    x = t[:, None] ** np.arange(size)
    y = 0.3 * (t - 10) ** 2 * rng.normal() + rng.normal(0, 3) + rng.normal(size=40)
    prior_sd = 30.0 / 10.0 ** np.arange(size)
    return _linear_posterior(x, y, np.zeros(size), prior_sd, 2.0, 2.0)


def _logit_betas(theta, data):
    x = theta["x"]
    ups = data["a"] * jax.nn.log_sigmoid(x) + data["b"] * jax.nn.log_sigmoid(-x)
    return jnp.sum(ups)


def stick_breaking(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Logits of the breaks of a stick: some shares with hardly any data."""
    size = (2, 12, 60)[seed % 3]
    counts = rng.multinomial(5 * size, rng.dirichlet(np.full(size + 1, 0.4)))
    a = 0.5 + counts[:-1]
    b = 0.5 * np.arange(size, 0, -1) + np.cumsum(counts[::-1])[::-1][1:]
    target = density(_logit_betas, {"x": (size,)}, {"a": a, "b": b})
    mean = special.digamma(a) - special.digamma(b)
    variance = special.polygamma(1, a) + special.polygamma(1, b)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _wishart(theta, data):
    log_diagonal = theta["log_diagonal"]
    size = log_diagonal.size
    # Rows below the diagonal, one after the other.
    rows, columns = np.tril_indices(size, -1)
    factor = jnp.diag(jnp.exp(log_diagonal)).at[rows, columns].set(theta["below"])
    z = data["back"] @ factor
    powers = data["df"] - jnp.arange(size)
    return jnp.sum(powers * log_diagonal) - 0.5 * jnp.sum(z**2)


def wishart(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A precision matrix given normal data, by the logs and rests of its factor."""
    size = (2, 4, 8)[seed % 3]
    df = size + rng.uniform(3, 20)
    unit = 10 ** rng.uniform(-1, 1, size)
    root = np.linalg.cholesky(np.cov(rng.normal(size=(size, 3 * size))))
    root = unit[:, None] * root
    noise = np.tril(rng.normal(size=(_DRAWS, size, size)), -1)
    chi = np.sqrt(rng.chisquare(df - np.arange(size), (_DRAWS, size)))
    factor = root @ (noise + chi[:, :, None] * np.eye(size))
    rows, columns = np.tril_indices(size, -1)
    draws = {
        "log_diagonal": np.log(np.diagonal(factor, axis1=1, axis2=2)),
        "below": factor[:, rows, columns],
    }
    shapes = {name: value.shape[1:] for name, value in draws.items()}
    data = {"back": np.linalg.inv(root), "df": df}
    return from_draws(density(_wishart, shapes, data), draws, Moments())


def _many_outcomes(theta, data):
    rest = (data["y"] - data["x"] @ theta["beta"]) @ data["back"]
    prior = theta["beta"] / data["prior_sd"]
    return -0.5 * (jnp.sum(rest**2) + jnp.sum(prior**2))


def many_outcomes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A regression of several correlated outcomes on several predictors."""
    size, outcomes = ((2, 2), (6, 5), (15, 10))[seed % 3]
    rows = 3 * size + 10
    unit = 10 ** rng.uniform(-2, 2, outcomes)
    root = np.linalg.cholesky(np.cov(rng.normal(size=(outcomes, 3 * outcomes))))
    root = unit[:, None] * root
    x = rng.normal(size=(rows, size)) + rng.normal(size=(rows, 1))
    noise = rng.normal(size=(rows, outcomes)) @ root.T
    y = x @ (unit * rng.normal(0, 1, (size, outcomes))) + noise
    back = np.linalg.inv(root).T
    prior_sd = np.broadcast_to(5 * unit, (size, outcomes))
    # In units of the prior, as one long vector.
    whole = np.kron(x.T @ x, (back @ back.T) * np.outer(unit, unit) * 25)
    covariance = np.linalg.inv(whole + np.eye(size * outcomes))
    shift = (x.T @ y @ back @ back.T * 5 * unit).ravel()
    data = {"x": x, "y": y, "back": back, "prior_sd": prior_sd}
    target = density(_many_outcomes, {"beta": (size, outcomes)}, data)
    mean = (covariance @ shift).reshape(size, outcomes) * prior_sd
    variance = np.diag(covariance).reshape(size, outcomes) * prior_sd**2
    return from_moments(target, {"beta": mean}, {"beta": variance}, "closed form")


def _uniform_limit(theta, data):
    x = theta["limit"]
    inside = jnp.all(x > data["largest"])
    heights = -(data["count"] + 1) * jnp.log(jnp.where(inside, x, 1.0))
    return jnp.where(inside, jnp.sum(heights), -jnp.inf)


def uniform_limit(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """The limits of uniform data: none below the largest seen, likeliest there."""
    size = (1, 3, 6)[seed % 3]
    count = rng.integers(6, 25, size).astype(float)
    largest = 10 ** rng.uniform(-0.5, 0.5, size) * rng.uniform(0.8, 1, size)
    data = {"count": count, "largest": largest}
    target = density(_uniform_limit, {"limit": (size,)}, data)
    mean = count * largest / (count - 1)
    variance = count * largest**2 / ((count - 1) ** 2 * (count - 2))
    return from_moments(target, {"limit": mean}, {"limit": variance}, "closed form")


def _guarantee(theta, data):
    start, log_rate = theta["start"], theta["log_rate"]
    inside = start < data["first"]
    waited = data["total"] - data["count"] * start
    height = (data["count"] + 1) * log_rate - jnp.exp(log_rate) * (waited + data["b"])
    return jnp.where(inside, height, -jnp.inf)


def guarantee(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Failures that begin after an unknown time, at an unknown rate."""
    count = (5, 12)[seed % 2]
    y = rng.normal() + rng.exponential(rng.uniform(0.5, 2), count)
    data = {"first": y.min(), "total": y.sum(), "count": float(count), "b": 0.5}
    # Given the rate the start is a reflected exponential; the rate is a gamma.
    rest = y.sum() - count * y.min() + 0.5
    target = density(_guarantee, {"start": (), "log_rate": ()}, data)
    mean_inverse = rest / (count - 1)
    second = rest**2 / ((count - 1) * (count - 2))
    mean = {
        "start": y.min() - mean_inverse / count,
        "log_rate": special.digamma(count) - np.log(rest),
    }
    variance = {
        "start": (2 * second - mean_inverse**2) / count**2,
        "log_rate": special.polygamma(1, count),
    }
    return from_moments(target, mean, variance, "closed form")
