"""Hidden states of one number each, not normal: exact by chains on a grid."""

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
from softcvi_experiments.verdict._transfer import chain_moments


def _steps(x, echo=1.0):
    return x[1:] - echo * x[:-1]


def _known(log_prob, data, grid, rows, step, middle=0.0, unit=1.0) -> RandomPosterior:
    """A chain with known numbers; the grid is in standard units."""
    _, mean, variance = chain_moments(grid, rows, step)
    target = density(log_prob, {"x": mean.shape}, data)
    right = {"x": middle + unit * mean}, {"x": unit**2 * variance}
    return from_moments(target, *right, "quadrature")


def _count_level(theta, data):
    x = theta["x"]
    rows = data["y"] * x - data["time"] * jnp.exp(x)
    first = (x[0] - data["guess"]) / data["wide"]
    moves = _steps(x) / data["step"]
    return jnp.sum(rows) - 0.5 * (first**2 + jnp.sum(moves**2))


def count_level(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Counts whose log rate wanders; some times have no data."""
    size = (2, 15, 60, 120)[seed % 4]
    step = rng.uniform(0.15, 0.6)
    level = rng.normal(0, 1) + np.cumsum(step * rng.normal(size=size))
    time = rng.uniform(0.5, 3, size) * (rng.uniform(size=size) < 0.85)
    y = rng.poisson(time * np.exp(level))
    data = {"y": y, "time": time, "step": step, "guess": 0.0, "wide": 2.0}
    grid = np.linspace(-11, 8, 501)
    rows = y[:, None] * grid - time[:, None] * np.exp(grid)
    rows[0] -= 0.5 * (grid / 2) ** 2
    return _known(
        _count_level, data, grid, rows, lambda x, b: -0.5 * ((x - b) / step) ** 2
    )


def _volatility(theta, data):
    x, log_step = theta["x"], theta["log_step"]
    rows = -0.5 * (x + data["y"] ** 2 * jnp.exp(-x - data["log_unit"]))
    moves = _steps(x, data["echo"]) * jnp.exp(-log_step)
    hyper = 0.5 * ((log_step + 1) / 0.5) ** 2
    prior = 0.5 * (jnp.sum(moves**2) + x[0] ** 2) + moves.size * log_step
    return jnp.sum(rows) - prior - hyper


def volatility(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Returns whose log variance wanders by steps of unknown size."""
    size, unit = (8, 25, 50)[seed % 3], 10 ** rng.uniform(-3, 1)
    echo, step = rng.uniform(0.85, 0.97), rng.uniform(0.2, 0.6)
    x = [rng.normal()]
    for _ in range(size - 1):
        x.append(echo * x[-1] + step * rng.normal())
    y = unit * np.exp(0.5 * np.array(x)) * rng.normal(size=size)
    data = {"y": y, "log_unit": 2 * np.log(unit), "echo": echo}
    grid = np.linspace(-8, 8, 261)
    rows = -0.5 * (grid + (y[:, None] / unit) ** 2 * np.exp(-grid))
    rows[0] -= 0.5 * grid**2

    def given(log_step: float):
        def move(x, before):
            return -0.5 * ((x - echo * before) * np.exp(-log_step)) ** 2

        return chain_moments(grid, rows, move)

    def conditional(u):
        found = [given(log_step) for log_step in u[:, 0]]
        total, mean, variance = (np.array(part) for part in zip(*found, strict=True))
        height = total - (size - 1) * u[:, 0] - 0.5 * ((u[:, 0] + 1) / 0.5) ** 2
        return height, mean, variance

    return nested(
        _volatility, {"log_step": (-3.2, 1.2)}, {"x": (size,)}, data, conditional, 31
    )


def _learning(theta, data):
    x = theta["x"]
    rows = data["y"] * x - data["n"] * jax.nn.softplus(x)
    moves = _steps(x, data["echo"]) / data["step"]
    return jnp.sum(rows) - 0.5 * (jnp.sum(moves**2) + (x[0] / 1.5) ** 2)


def learning(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Right answers of an animal whose skill drifts from trial to trial."""
    size, step = (5, 30, 100)[seed % 3], rng.uniform(0.2, 0.7)
    skill = np.cumsum(step * rng.normal(0.2, 1, size))
    n = rng.integers(1, 4, size)
    y = rng.binomial(n, special.expit(skill))
    data = {"y": y, "n": n, "echo": 0.98, "step": step}
    grid = np.linspace(-14, 14, 561)
    rows = y[:, None] * grid - n[:, None] * np.logaddexp(0, grid)
    rows[0] -= 0.5 * (grid / 1.5) ** 2
    return _known(
        _learning, data, grid, rows, lambda x, b: -0.5 * ((x - 0.98 * b) / step) ** 2
    )


def _robust_level(theta, data):
    x = (theta["x"] - data["place"]) / data["unit"]
    rest = data["y"] - x
    rows = -0.5 * (data["df"] + 1) * jnp.log1p(rest**2 / data["df"])
    moves = _steps(x) / data["step"]
    return jnp.sum(rows) - 0.5 * (jnp.sum(moves**2) + (x[0] / 5) ** 2)


def robust_level(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A level seen with t noise: gross errors, or a quick change."""
    size, step = (2, 12, 40)[seed % 3], rng.uniform(0.3, 1.2)
    df, unit = rng.uniform(2, 4), 10 ** rng.uniform(-4, 4)
    x = np.cumsum(step * rng.normal(size=size))
    y = x + rng.standard_t(df, size)
    data = {
        "y": y,
        "df": df,
        "step": step,
        "unit": unit,
        "place": unit * rng.normal(0, 20),
    }
    grid = np.linspace(min(y.min(), -20) - 10, max(y.max(), 20) + 10, 901)
    rows = -0.5 * (df + 1) * np.log1p((y[:, None] - grid) ** 2 / df)
    rows[0] -= 0.5 * (grid / 5) ** 2

    def move(x, before):
        return -0.5 * ((x - before) / step) ** 2

    return _known(_robust_level, data, grid, rows, move, data["place"], unit)


def _magnet(theta, data):
    x = theta["x"]
    wells = data["depth"] * (x**2 - 1) ** 2 - data["push"] * x
    return -jnp.sum(wells) - data["pull"] * jnp.sum(_steps(x) ** 2)


def magnet(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sites with two wells each that pull at their neighbours: a field on a line."""
    size = (2, 6, 20)[seed % 3]
    depth, pull = rng.uniform(1, 2.5), rng.uniform(0.3, 1.2)
    push = rng.uniform(0, 0.4 / size)
    data = {"depth": depth, "pull": pull, "push": push}
    grid = np.linspace(-3.2, 3.2, 257)
    row = -depth * (grid**2 - 1) ** 2 + push * grid
    rows = np.repeat(row[None], size, axis=0)
    return _known(_magnet, data, grid, rows, lambda x, b: -pull * (x - b) ** 2)


def _jumps(theta, data):
    x = theta["x"]
    rest = (data["y"] - x) / data["noise"]
    moves = jnp.abs(_steps(x)) / data["size"]
    return -0.5 * (jnp.sum(rest**2) + (x[0] / data["wide"]) ** 2) - jnp.sum(moves)


def jumps(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A level with Laplace steps: flat stretches and jumps, kinks everywhere."""
    size, unit = (3, 12, 40)[seed % 3], 10 ** rng.uniform(-2, 2)
    level = np.cumsum(rng.laplace(0, 0.7, size))
    y = level + rng.normal(size=size)
    data = {"y": unit * y, "noise": unit, "size": 0.7 * unit, "wide": 5 * unit}
    grid = np.linspace(y.min() - 7, y.max() + 7, 1001)
    rows = -0.5 * (y[:, None] - grid) ** 2
    rows[0] -= 0.5 * (grid / 5) ** 2
    return _known(
        _jumps, data, grid, rows, lambda x, b: -np.abs(x - b) / 0.7, unit=unit
    )


def _stock(theta, data):
    x = theta["x"]
    safe = jnp.where(x > 0, x, 1.0)
    rows = data["y"] * jnp.log(safe) - data["catch"] * safe
    moves = (x[1:] - x[:-1]) / data["step"]
    height = jnp.sum(rows) - 0.5 * (jnp.sum(moves**2) + ((x[0] - 2) / 2) ** 2)
    return jnp.where(jnp.all(x > 0), height, -jnp.inf)


def stock(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A stock that walks at random and is never below zero, seen by counts."""
    size, step = (2, 4, 6)[seed % 3], rng.uniform(0.4, 0.9)
    level = np.abs(2 + np.cumsum(step * rng.normal(size=size)))
    y = rng.poisson(1.5 * level)
    data = {"y": y, "catch": 1.5, "step": step}
    # Cells begin at zero: middles of cells, for the sake of a sharp edge.
    grid = (np.arange(700) + 0.5) * 0.02
    rows = y[:, None] * np.log(grid) - 1.5 * grid
    rows[0] -= 0.5 * ((grid - 2) / 2) ** 2
    return _known(_stock, data, grid, rows, lambda x, b: -0.5 * ((x - b) / step) ** 2)
