"""Time series with few unknown numbers: errors that last, changing noise, regimes."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import latticed, linear_given, nested
from softcvi_experiments.verdict._posterior import RandomPosterior


def _moving_average(theta, data):
    echo, log_sd = theta["echo"], theta["log_sd"]
    count = data["y"].size
    near = jnp.eye(count, k=1) + jnp.eye(count, k=-1)
    factor = jnp.linalg.cholesky((1 + echo**2) * jnp.eye(count) + echo * near)
    z = jax.scipy.linalg.solve_triangular(factor, data["y"] - theta["mean"], lower=True)
    fit = -0.5 * jnp.sum(z**2) * jnp.exp(-2 * log_sd) - count * log_sd
    fit -= jnp.sum(jnp.log(jnp.diagonal(factor)))
    prior = (theta["mean"] - data["guess"]) ** 2 / (10 * data["unit"]) ** 2
    prior += (echo / 1.5) ** 2 + (log_sd - jnp.log(data["unit"])) ** 2
    return fit - 0.5 * prior


def moving_average(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A moving average whose weight may be on either error: two modes."""
    count, unit = (15, 40)[seed % 2], 10 ** rng.uniform(-2, 2)
    noise = unit * rng.normal(size=count + 1)
    place = unit * rng.normal(0, 5)
    y = place + noise[1:] + rng.uniform(0.4, 0.8) * noise[:-1]
    guess = place + 3 * unit * rng.normal()
    data = {"y": y, "unit": unit, "guess": guess}
    # Sines are the eigenvectors of all these covariances.
    k = np.arange(1, count + 1)
    sines = np.sin(np.pi * np.outer(k, k) / (count + 1)) * np.sqrt(2 / (count + 1))
    turned, ones = sines @ y, sines @ np.ones(count)

    def conditional(u):
        echo, log_sd = u[:, :1], u[:, 1]
        size = 1 + echo**2 + 2 * echo * np.cos(np.pi * k / (count + 1))
        rows = turned / np.sqrt(size)
        design = (ones / np.sqrt(size))[:, :, None]
        height, *rest = linear_given(design, rows, np.exp(log_sd), guess, 10 * unit)
        height -= 0.5 * np.sum(np.log(size), axis=1)
        height -= 0.5 * ((echo[:, 0] / 1.5) ** 2 + (log_sd - np.log(unit)) ** 2)
        return height, *rest

    middle = np.log(unit)
    outer = {"echo": (-9.0, 9.0), "log_sd": (middle - 5, middle + 4)}
    return nested(_moving_average, outer, {"mean": ()}, data, conditional, 301)


def _garch(theta, data):
    shares = jax.nn.softmax(jnp.stack([theta["shock"], theta["stay"], jnp.zeros(())]))
    level = jnp.exp(theta["level"])

    def day(variance, y):
        height = -0.5 * (y**2 / variance + jnp.log(variance))
        return level * shares[2] + shares[0] * y**2 + shares[1] * variance, height

    _, rows = jax.lax.scan(day, level, data["y"])
    prior = (theta["level"] - data["log_unit"]) ** 2
    prior += (theta["shock"] / 1.5) ** 2 + (theta["stay"] / 1.5) ** 2
    return jnp.sum(rows) - 0.5 * prior


def garch(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Returns whose variance follows the last return and the last variance."""
    unit = 10 ** rng.uniform(-3, 0)
    y, variance = [], unit**2
    a, b = rng.uniform(0.1, 0.4), rng.uniform(0.2, 0.5)
    for _ in range(60):
        y.append(np.sqrt(variance) * rng.normal())
        variance = unit**2 * (1 - a - b) + a * y[-1] ** 2 + b * variance
    middle = 2 * np.log(unit) + 0.5 * rng.normal()
    box = {
        "level": (middle - 6.0, middle + 6.0),
        "shock": (-9.0, 9.0),
        "stay": (-9.0, 9.0),
    }
    return latticed(_garch, box, {"y": np.array(y), "log_unit": middle}, 61)


def _noisy_level(theta, data):
    level = theta["level"]
    steps = jnp.diff(level) * jnp.exp(-theta["log_step"])
    rest = (data["y"] - level) * jnp.exp(-theta["log_noise"])
    first = (level[0] - data["first"]) / data["first_sd"]
    total = jnp.sum(steps**2) + jnp.sum(rest**2) + first**2
    hyper = theta["log_step"] - data["log_step"], theta["log_noise"] - data["log_noise"]
    fit = -0.5 * total - steps.size * theta["log_step"] - rest.size * theta["log_noise"]
    return fit - 0.5 * (hyper[0] ** 2 + (hyper[1] / 0.7) ** 2)


def noisy_level(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A wandering level seen with noise, the sizes of both unknown."""
    count, unit = (8, 14, 22)[seed % 3], 10 ** rng.uniform(-3, 3)
    moves = unit * 10 ** rng.uniform(-0.8, 0.3) * rng.normal(size=count)
    level = unit * rng.normal(0, 10) + np.cumsum(moves)
    y = level + unit * rng.normal(size=count)
    data = {
        "y": y,
        "first": level[0] + unit * rng.normal(),
        "first_sd": 4 * unit,
        "log_step": np.log(unit) - 0.5,
        "log_noise": np.log(unit) + 0.3 * rng.normal(),
    }
    # In units of the prior of the first level, whose place is taken away.
    unit = data["first_sd"]
    steps = np.diff(np.eye(count), axis=0)
    first = np.diag(np.eye(count)[0])
    z = (y - data["first"]) / unit

    def conditional(u):
        step, noise = (np.exp(-2 * (u.T - np.log(unit))))[:, :, None, None]
        precision = steps.T @ steps * step + np.eye(count) * noise + first
        shift = noise[:, 0] * z
        covariance = np.linalg.inv(precision)
        mean = np.einsum("nij,nj->ni", covariance, shift)
        height = 0.5 * np.sum(shift * (mean - z), axis=1)
        height -= 0.5 * np.linalg.slogdet(precision)[1]
        height -= (count - 1) * u[:, 0] + count * u[:, 1]
        hyper = (u[:, 0] - data["log_step"], (u[:, 1] - data["log_noise"]) / 0.7)
        height -= 0.5 * (hyper[0] ** 2 + hyper[1] ** 2)
        variance = unit**2 * np.diagonal(covariance, axis1=1, axis2=2)
        return height, data["first"] + unit * mean, variance

    outer = {
        "log_step": (data["log_step"] - 7, data["log_step"] + 6),
        "log_noise": (data["log_noise"] - 5, data["log_noise"] + 4),
    }
    return nested(_noisy_level, outer, {"level": (count,)}, data, conditional, 61)


def _near_unit_root(theta, data):
    echo, mean, log_sd = jnp.tanh(theta["echo"]), theta["mean"], theta["log_sd"]
    y = data["y"] - mean
    z = (y[1:] - echo * y[:-1]) * jnp.exp(-log_sd)
    hyper = (log_sd - jnp.log(data["unit"])) ** 2 + (theta["echo"] - 1.5) ** 2
    prior = ((mean - data["guess"]) / (30 * data["unit"])) ** 2
    return -0.5 * jnp.sum(z**2) - z.size * log_sd - 0.5 * (hyper + prior)


def near_unit_root(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A series near a random walk: the more so, the less is known of its mean."""
    count, unit = (20, 60)[seed % 2], 10 ** rng.uniform(-2, 3)
    place, echo = unit * rng.normal(0, 20), rng.uniform(0.8, 0.97)
    states = [rng.normal(0, 2)]
    for _ in range(count):
        states.append(echo * states[-1] + rng.normal())
    y = place + unit * np.array(states)
    guess = place + 10 * unit * rng.normal()
    data = {"y": y, "unit": unit, "guess": guess}

    def conditional(u):
        echo = np.tanh(u[:, :1])
        design = np.repeat(1 - echo, count, axis=1)[:, :, None]
        # The place is taken away before small differences are formed.
        rows = (y[1:] - place) - echo * (y[:-1] - place)
        prior = guess - place, 30 * unit
        height, mean, variance = linear_given(design, rows, np.exp(u[:, 1]), *prior)
        height -= 0.5 * ((u[:, 0] - 1.5) ** 2 + (u[:, 1] - np.log(unit)) ** 2)
        return height, place + mean, variance

    middle = np.log(unit)
    outer = {"echo": (-6.0, 9.0), "log_sd": (middle - 4, middle + 4)}
    return nested(_near_unit_root, outer, {"mean": ()}, data, conditional, 301)


def _hidden_markov(theta, data):
    logs = jnp.stack([theta["a"], theta["b"]])
    rows = jnp.exp(data["y"][:, None] * logs - jnp.exp(logs))
    keep = data["keep"]
    move = jnp.array([[1.0, 0.0], [0.0, 1.0]]) * (2 * keep - 1) + (1 - keep)

    def day(state, row):
        chance = (move @ state) * row
        total = jnp.sum(chance)
        return chance / total, jnp.log(total)

    _, heights = jax.lax.scan(day, jnp.full(2, 0.5, rows.dtype), rows)
    return jnp.sum(heights) - 0.5 * jnp.sum(((logs - 1) / 1.5) ** 2)


def hidden_markov(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts of a system that changes between two states without names."""
    keep, count = rng.uniform(0.75, 0.95), (25, 60)[seed % 2]
    state = np.cumsum(rng.uniform(size=count) > keep) % 2
    y = rng.poisson(np.array([rng.uniform(0.5, 2), rng.uniform(2.5, 6)])[state])
    data = {"y": y, "keep": keep}
    return latticed(_hidden_markov, {"a": (-9.0, 5.0), "b": (-9.0, 5.0)}, data, 301)
