"""More shapes with one mode: bent, skewed, bounded and flat; closed forms."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from softcvi.targets import UnconstrainedSpace, interval, positive
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _wave(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    rest = (z[1] - jnp.sin(data["waves"] * z[0])) / data["width"]
    return -0.5 * (z[0] ** 2 + rest**2 + jnp.sum(z[2:] ** 2))


def _cubic(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    rest = (z[1] - data["bend"] * z[0] ** 3) / data["width"]
    return -0.5 * (z[0] ** 2 + rest**2 + jnp.sum(z[2:] ** 2))


def _growth(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    rest = (z[1] - jnp.exp(data["rate"] * z[0])) / data["width"]
    return -0.5 * (z[0] ** 2 + rest**2 + jnp.sum(z[2:] ** 2))


def _gumbel(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    return -jnp.sum(z + jnp.exp(-z))


def _students(theta, data):
    z = (theta["x"] - data["shift"]) / data["unit"]
    return -0.5 * (data["df"] + 1) * jnp.sum(jnp.log1p(z**2 / data["df"]))


def _blocks(theta, data):
    z = data["factor"] @ (theta["x"] - data["mean"])
    return -0.5 * jnp.sum(z**2)


def _variances(theta, data):
    x = theta["x"]
    return -jnp.sum((data["shape"] + 1) * jnp.log(x) + data["scale"] / x)


def _shares(theta, data):
    p = (theta["x"] - data["low"]) / (data["high"] - data["low"])
    return jnp.sum((data["a"] - 1) * jnp.log(p) + (data["b"] - 1) * jnp.log1p(-p))


def _half_normal(theta, data):
    z = (theta["x"] - data["low"]) / data["scale"]
    return jnp.where(jnp.all(z > 0), -0.5 * jnp.sum(z**2), -jnp.inf)


def _simplex(theta, data):
    z = (theta["x"] - data["low"]) / data["side"]
    inside = jnp.all(z > 0) & (jnp.sum(z) < 1)
    return jnp.where(inside, 0.0, -jnp.inf)


def _annulus(theta, data):
    radius = jnp.sqrt(jnp.sum((theta["x"] - data["middle"]) ** 2))
    inside = (radius > data["inner"]) & (radius < data["outer"])
    return jnp.where(inside, 0.0, -jnp.inf)


def _units(rng, size: int) -> dict:
    return {"shift": rng.normal(0, 5, size), "unit": 10 ** rng.uniform(-2, 2, size)}


def _with_units(log_prob, data: dict, mean, variance) -> RandomPosterior:
    """The answer in raw units from that in standard ones."""
    target = density(log_prob, {"x": data["shift"].shape}, data)
    centre = data["shift"] + data["unit"] * mean
    spread = data["unit"] ** 2 * variance
    return from_moments(target, {"x": centre}, {"x": spread}, "closed form")


def _bent(rng, log_prob, size: int, extra: dict, mean_1, variance_1):
    mean, variance = np.zeros(size), np.ones(size)
    mean[1], variance[1] = mean_1, variance_1
    return _with_units(log_prob, _units(rng, size) | extra, mean, variance)


def wave(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A parameter along the sine of another."""
    waves, width = rng.uniform(0.5, 2.5), rng.uniform(0.1, 0.5)
    variance = 0.5 * (1 - np.exp(-2 * waves**2)) + width**2
    extra = {"waves": waves, "width": width}
    return _bent(rng, _wave, (2, 5)[seed % 2], extra, 0.0, variance)


def cubic(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A parameter along the cube of another."""
    bend, width = rng.uniform(0.05, 0.3), rng.uniform(0.2, 0.8)
    extra = {"bend": bend, "width": width}
    variance = 15 * bend**2 + width**2
    return _bent(rng, _cubic, (2, 7)[seed % 2], extra, 0.0, variance)


def growth(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A parameter along the exponential of another."""
    rate, width = rng.uniform(0.2, 0.7), rng.uniform(0.1, 0.5)
    mean = np.exp(rate**2 / 2)
    variance = np.exp(2 * rate**2) - np.exp(rate**2) + width**2
    extra = {"rate": rate, "width": width}
    return _bent(rng, _growth, (2, 6)[seed % 2], extra, mean, variance)


def gumbel(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Independent Gumbel variables in raw units."""
    size = (2, 10, 40)[seed % 3]
    mean, variance = np.full(size, np.euler_gamma), np.full(size, np.pi**2 / 6)
    return _with_units(_gumbel, _units(rng, size), mean, variance)


def student_products(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Independent t variables with 6 to 15 degrees of freedom."""
    size = (3, 12, 45)[seed % 3]
    df = rng.uniform(6, 15)
    data = _units(rng, size) | {"df": df}
    return _with_units(_students, data, np.zeros(size), np.full(size, df / (df - 2)))


def block_normal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 6 to 60 parameters, correlated within blocks of three."""
    size = (6, 24, 60)[seed % 3]
    covariance = np.zeros((size, size))
    for begin in range(0, size, 3):
        block = rng.normal(size=(3, 4))
        covariance[begin : begin + 3, begin : begin + 3] = block @ block.T
    unit = 10 ** rng.uniform(-3, 3, size)
    covariance *= np.outer(unit, unit)
    mean = unit * rng.normal(0, 8, size)
    inverse = np.linalg.inv(covariance / np.outer(unit, unit))
    factor = np.linalg.cholesky(inverse).T / unit
    target = density(_blocks, {"x": (size,)}, {"mean": mean, "factor": factor})
    return from_moments(target, {"x": mean}, {"x": np.diag(covariance)}, "closed form")


def variances(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Inverse gamma posteriors of variances in raw units."""
    size = (2, 6, 20)[seed % 3]
    shape, scale = rng.uniform(6, 60, size), 10 ** rng.uniform(-4, 4, size)
    space = UnconstrainedSpace({"x": positive()})
    target = density(
        _variances, {"x": (size,)}, {"shape": shape, "scale": scale}, space
    )
    exact = stats.invgamma(shape, scale=scale)
    return from_moments(target, {"x": exact.mean()}, {"x": exact.var()}, "closed form")


def scaled_shares(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Beta variables stretched to intervals in raw units."""
    size = (1, 3, 10)[seed % 3]
    a, b = rng.uniform(0.7, 12, (2, size))
    low, width = rng.uniform(-50, 50), 10 ** rng.uniform(-1, 2)
    space = UnconstrainedSpace({"x": interval(low, low + width)})
    data = {"a": a, "b": b, "low": low, "high": low + width}
    target = density(_shares, {"x": (size,)}, data, space)
    exact = stats.beta(a, b, loc=low, scale=width)
    return from_moments(target, {"x": exact.mean()}, {"x": exact.var()}, "closed form")


def half_normals(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals cut off at their highest point."""
    size = (1, 2, 5)[seed % 3]
    scale = 10 ** rng.uniform(-0.5, 1, size)
    low = -scale * rng.uniform(0.0, 1.5, size)
    target = density(_half_normal, {"x": (size,)}, {"low": low, "scale": scale})
    mean = low + scale * np.sqrt(2 / np.pi)
    variance = scale**2 * (1 - 2 / np.pi)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def triangle(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Uniform on a triangle or its like in three and four dimensions."""
    size = (2, 3, 4)[seed % 3]
    side = 10 ** rng.uniform(0.3, 1)
    low = -side * rng.uniform(0.05, 0.3, size)
    target = density(_simplex, {"x": (size,)}, {"low": low, "side": side})
    variance = np.full(size, side**2 * size / ((size + 1) ** 2 * (size + 2)))
    mean = low + side / (size + 1)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def annulus(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Uniform between two circles."""
    inner, outer = rng.uniform(1, 3), rng.uniform(4, 8)
    middle = rng.normal(0, 1, 2)
    data = {"inner": inner, "outer": outer, "middle": middle}
    target = density(_annulus, {"x": (2,)}, data)
    variance = np.full(2, (inner**2 + outer**2) / 4)
    return from_moments(target, {"x": middle}, {"x": variance}, "closed form")
