"""Tails with few or no moments, and the scales behind them: quantiles are known."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, ndtri
from scipy import special, stats

from softcvi.targets import UnconstrainedSpace, positive
from softcvi_experiments.verdict._figures import random_turn
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
    from_moments,
)

_DRAWS = 400_000
# Where a normal is one standard deviation below, at, and above its middle.
_LEVELS = np.array([0.15866, 0.5, 0.84134])[:, None]


def _by_quantiles(log_prob, data, quantiles, space=None) -> RandomPosterior:
    low, centre, high = quantiles
    target = density(log_prob, {"x": centre.shape}, data, space)
    right = {"x": centre}, {"x": (high - low) / 2}
    return RandomPosterior(target, *right, Quantiles(), "closed form")


def _drawn(log_prob, data, measure, **draws) -> RandomPosterior:
    shapes = {name: value.shape[1:] for name, value in draws.items()}
    return from_draws(density(log_prob, shapes, data), draws, measure)


def _turned_cauchy(theta, data):
    z = data["back"] @ (theta["x"] - data["shift"])
    return -jnp.sum(jnp.log1p(z**2))


def turned_cauchy(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sums of independent Cauchy variables: arms along axes that are turned."""
    size, unit = (2, 4, 8)[seed % 3], 10 ** rng.uniform(-2, 2)
    factor = unit * random_turn(rng, size) * rng.uniform(0.3, 2, size)
    shift = unit * rng.normal(0, 20, size)
    data = {"back": np.linalg.inv(factor), "shift": shift}
    # Sums of Cauchy variables are Cauchy variables, and their scales add up.
    scale = np.abs(factor).sum(axis=1)
    return _by_quantiles(
        _turned_cauchy, data, shift + scale * stats.cauchy.ppf(_LEVELS)
    )


def _half_t_scales(theta, data):
    log_scale = theta["log_scale"]
    z = theta["x"] / data["unit"] * jnp.exp(-log_scale)
    # Scales are half-t with two degrees of freedom; x adds minus the log scale.
    return -jnp.sum(1.5 * jnp.log1p(0.5 * jnp.exp(2 * log_scale)) + 0.5 * z**2)


def half_t_scales(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Coefficients with half-t scales of their own (a horseshoe), and no data."""
    size = (1, 3, 8)[seed % 3]
    unit = 10 ** rng.uniform(-2, 2, size)
    log_scale = np.log(np.abs(rng.standard_t(2, (_DRAWS, size))))
    x = unit * np.exp(log_scale) * rng.normal(size=(_DRAWS, size))
    draws = {"log_scale": log_scale, "x": x}
    return _drawn(_half_t_scales, {"unit": unit}, Quantiles(), **draws)


def _levy_times(theta, data):
    x = theta["x"] / data["unit"]
    return -jnp.sum(1.5 * jnp.log(x) + 0.5 / x)


def levy_times(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Times until a walk reaches a border (Levy): they have no mean."""
    size = (1, 3, 9)[seed % 3]
    unit = 10 ** rng.uniform(-3, 3, size)
    quantiles = unit / special.ndtri(_LEVELS / 2) ** 2
    space = UnconstrainedSpace({"x": positive()})
    return _by_quantiles(_levy_times, {"unit": unit}, quantiles, space)


def _raw_lomax(theta, data):
    z = (theta["x"] - data["low"]) / data["unit"]
    tail = (data["power"] + 1) * jnp.log1p(jnp.where(z > 0, z, 0.0))
    return jnp.sum(jnp.where(z > 0, -tail, -jnp.inf))


def raw_lomax(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Amounts above a limit with power tails of one to three moments, as they are."""
    size = (1, 2, 6)[seed % 3]
    power, unit = rng.uniform(1.2, 3, size), 10 ** rng.uniform(-2, 3, size)
    low = unit * rng.normal(0, 3, size)
    data = {"power": power, "unit": unit, "low": low}
    quantiles = low + unit * np.expm1(-np.log1p(-_LEVELS) / power)
    return _by_quantiles(_raw_lomax, data, quantiles)


def _lasso_scales(theta, data):
    u, x = theta["log_variance"], theta["x"] - data["place"]
    z = jnp.sum(x**2, axis=1) / data["unit"] ** 2 * jnp.exp(-u)
    height = (1 - 0.5 * x.shape[1]) * u - jnp.exp(u) - 0.5 * z
    return jnp.sum(height)


def lasso_scales(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Coefficients of which groups have a variance, exponential before (a lasso)."""
    groups, each = ((1, 1), (2, 2), (5, 3))[seed % 3]
    unit = 10 ** rng.uniform(-2, 2)
    place = unit * rng.normal(0, 20, (groups, each))
    shapes = {"log_variance": (groups,), "x": (groups, each)}
    target = density(_lasso_scales, shapes, {"unit": unit, "place": place})
    mean = {"log_variance": np.full(groups, special.digamma(1.0)), "x": place}
    variance = {"log_variance": np.full(groups, np.pi**2 / 6)}
    variance["x"] = np.full(place.shape, unit**2)
    return from_moments(target, mean, variance, "closed form")


def _unknown_tail(theta, data):
    df = 0.5 + jnp.exp(theta["log_df"])
    z = (theta["x"] - data["shift"]) / data["unit"]
    height = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * jnp.log(df)
    tails = z.size * height - 0.5 * (df + 1) * jnp.sum(jnp.log1p(z**2 / df))
    return tails - 0.5 * ((theta["log_df"] - data["m"]) / data["sd"]) ** 2


def unknown_tail(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Variables with t tails whose degrees of freedom are unknown, too."""
    size, m, sd = (1, 3, 10)[seed % 3], rng.normal(0.7, 0.5), rng.uniform(0.3, 0.8)
    unit = 10 ** rng.uniform(-2, 2, size)
    shift = unit * rng.normal(0, 20, size)
    data = {"m": m, "sd": sd, "unit": unit, "shift": shift}
    log_df = rng.normal(m, sd, _DRAWS)
    x = shift + unit * rng.standard_t(0.5 + np.exp(log_df)[:, None], (_DRAWS, size))
    return _drawn(_unknown_tail, data, Quantiles(), log_df=log_df, x=x)


def _heavy_walk(theta, data):
    x = theta["x"] / data["unit"]
    steps = jnp.concatenate([x[:1], x[1:] - x[:-1]])
    return -0.5 * (data["df"] + 1) * jnp.sum(jnp.log1p(steps**2 / data["df"]))


def heavy_walk(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A walk with rare long steps: all that comes after one has made it, too."""
    size, df = (2, 5, 15)[seed % 3], rng.uniform(1.3, 2.5)
    unit = 10 ** rng.uniform(-3, 3)
    x = unit * np.cumsum(rng.standard_t(df, (_DRAWS, size)), axis=1)
    return _drawn(_heavy_walk, {"unit": unit, "df": df}, Quantiles(), x=x)


def _heavy_margins(theta, data):
    y = jnp.abs(theta["x"] - data["shift"]) / data["unit"]
    far = jnp.sqrt(2 + y**2)
    # Chance beyond, with two degrees of freedom, without a difference of like numbers.
    z = -jnp.sign(theta["x"] - data["shift"]) * ndtri(1 / (far * (far + y)))
    margins = 0.5 * z**2 - 3 * jnp.log(far)
    return jnp.sum(margins) - 0.5 * jnp.sum((data["factor"] @ z) ** 2)


def heavy_margins(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Variables with t tails of two degrees, linked as normals are (a copula)."""
    size, unit = (2, 4, 9)[seed % 3], 10 ** rng.uniform(-2, 2)
    noise = rng.normal(size=(size, 2 * size)) + rng.normal(size=(1, 2 * size))
    factor = np.linalg.cholesky(np.linalg.inv(np.corrcoef(noise))).T
    shift = unit * rng.normal(0, 10, size)
    data = {"shift": shift, "unit": unit, "factor": factor}
    return _by_quantiles(_heavy_margins, data, shift + unit * stats.t(2).ppf(_LEVELS))
