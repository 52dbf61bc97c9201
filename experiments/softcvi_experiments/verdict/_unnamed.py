"""Posteriors of several modes whose density is not written as the log of a sum."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi import DensityTarget
from softcvi_experiments.verdict._gridded import gridded
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _wishart(rng, size: int) -> np.ndarray:
    noise = rng.normal(size=(size, 3 * size))
    return noise @ noise.T / (3 * size)


def _softplus_pair(theta, data):
    z = jnp.einsum("kij,kj->ki", data["factor"], theta["x"] - data["means"])
    one, other = data["height"] - 0.5 * jnp.sum(z**2, axis=1)
    return one + jax.nn.softplus(other - one)


def softplus_pair(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two correlated normals, added through a softplus of their difference."""
    size = (2, 4, 8, 20)[seed % 4]
    weight = rng.uniform(0.2, 0.8)
    weights = np.array([weight, 1 - weight])
    way = rng.normal(size=size)
    shift = 10 ** rng.uniform(0.7, 1.7) * way / np.linalg.norm(way)
    means = rng.normal(0, 5, size) + np.stack([0 * shift, shift])
    widths = np.array([1.0, rng.uniform(0.6, 1.5)])
    covariances = np.stack([w**2 * _wishart(rng, size) for w in widths])
    factors = np.linalg.cholesky(np.linalg.inv(covariances)).transpose(0, 2, 1)
    heights = np.log(weights) - 0.5 * np.linalg.slogdet(covariances)[1]
    data = {"means": means, "factor": factors, "height": heights}
    mean = weights @ means
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    target = density(_softplus_pair, {"x": (size,)}, data)
    variance = weights @ (variances + (means - mean) ** 2)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _log_cosh(theta, data):
    along = jnp.abs(jnp.sum(data["slope"] * theta["x"]))
    bend = data["factor"] @ theta["x"]
    return along + jnp.log1p(jnp.exp(-2 * along)) - 0.5 * jnp.sum(bend**2)


def log_cosh(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A quadratic form and the log of a hyperbolic cosine, which makes two normals."""
    size = (2, 5, 12)[seed % 3]
    covariance = _wishart(rng, size)
    factor = np.linalg.cholesky(np.linalg.inv(covariance)).T
    way = rng.normal(size=size)
    middle = rng.uniform(2, 12) * way / np.sqrt(way @ np.linalg.solve(covariance, way))
    data = {"slope": np.linalg.solve(covariance, middle), "factor": factor}
    variance = np.diag(covariance) + middle**2
    target = density(_log_cosh, {"x": (size,)}, data)
    return from_moments(target, {"x": 0 * middle}, {"x": variance}, "closed form")


def callback_laplace(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two products of Laplace densities in NumPy, behind a callback."""
    size = (1, 2)[seed % 2]
    weight = rng.uniform(0.3, 0.7)
    weights = np.array([weight, 1 - weight])
    means = rng.normal(0, 2, (2, size))
    means[1] += rng.uniform(6, 15)
    scales = np.array([1.0, rng.uniform(0.4, 1.5)])

    def height(x):
        z = np.abs(np.asarray(x, np.float64) - means).sum(axis=1) / scales
        parts = np.log(weights) - size * np.log(scales) - z
        return np.asarray(np.logaddexp(*parts), np.float32)

    def log_prob(theta):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(height, shape, theta["x"], vmap_method="sequential")

    mean = weights @ means
    variance = weights @ (2 * scales[:, None] ** 2 + (means - mean) ** 2)
    target = DensityTarget(log_prob, {"x": jnp.zeros(size)})
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _spike_slab(theta, data):
    b = theta["b"]
    narrow, wide = (
        jnp.log(share) - jnp.log(sd) - 0.5 * (b / sd) ** 2
        for share, sd in zip(data["shares"], data["sds"], strict=True)
    )
    prior = jnp.maximum(narrow, wide) + jnp.log1p(jnp.exp(-jnp.abs(narrow - wide)))
    return jnp.sum(prior) - 0.5 * jnp.sum((data["y"] - data["x"] @ b) ** 2)


def spike_slab(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Correlated coefficients, each with a narrow and a wide normal prior."""
    size = (2, 3)[seed % 2]
    shares, sds = np.array([0.6, 0.4]), np.array([0.1, 2.0])
    x = rng.normal(size=(12, size)) + 1.5 * rng.normal(size=(12, 1))
    y = x[:, 0] * rng.uniform(0.5, 1.5) + rng.normal(size=12)
    heights, means, variances = [], [], []
    for pick in np.ndindex(*(2,) * size):
        chosen = np.array(pick)
        prior = sds[chosen] ** 2
        covariance = np.linalg.inv(x.T @ x + np.diag(1 / prior))
        mean = covariance @ x.T @ y
        fit = 0.5 * mean @ x.T @ y + 0.5 * np.linalg.slogdet(covariance)[1]
        heights.append(fit + np.sum(np.log(shares[chosen]) - 0.5 * np.log(prior)))
        means.append(mean)
        variances.append(np.diag(covariance))
    weights = np.exp(np.array(heights) - np.max(heights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    variance = weights @ (np.array(variances) + (np.array(means) - mean) ** 2)
    data = {"x": x, "y": y, "shares": shares, "sds": sds}
    target = density(_spike_slab, {"b": (size,)}, data)
    return from_moments(target, {"b": mean}, {"b": variance}, "closed form")


def _folded_normal(theta, data):
    scale = jnp.exp(theta["s"])
    z, m = data["y"] / scale, theta["m"] / scale
    fold = jnp.abs(z * m) + jnp.log1p(jnp.exp(-2 * jnp.abs(z * m)))
    rows = fold - 0.5 * (z**2 + m**2) - theta["s"]
    return jnp.sum(rows) - 0.5 * (theta["m"] / 5) ** 2 - 0.5 * theta["s"] ** 2


def folded_normal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Absolute values of normal data: the sign of the mean is unknown."""
    y = np.abs(rng.normal(rng.uniform(1, 3), 1.0, 20))
    return gridded(_folded_normal, {"m": (-8, 8), "s": (-3, 3)}, {"y": y})


def _sum_and_product(theta, data):
    a, b = theta["a"], theta["b"]
    fit = jnp.stack([a + b, a * b])
    misfit = jnp.sum((data["y"] - fit) ** 2) / data["sd"] ** 2
    return -0.5 * misfit - 0.5 * (a**2 + b**2) / 16


def sum_and_product(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two numbers of which the sum and the product were seen: they may change roles."""
    a, b, sd = rng.uniform(-4, 0), rng.uniform(0.5, 4), rng.uniform(0.3, 1.0)
    y = np.array([a + b, a * b]) + sd * rng.normal(size=2)
    return gridded(_sum_and_product, {"a": (-9, 9), "b": (-9, 9)}, {"y": y, "sd": sd})


def _triangulation(theta, data):
    place = jnp.stack([theta["u"], theta["v"]])
    reach = jnp.sqrt(jnp.sum((place - data["sensors"]) ** 2, axis=1) + 1e-9)
    misfit = jnp.sum((data["y"] - reach) ** 2) / data["sd"] ** 2
    return -0.5 * misfit - 0.5 * jnp.sum(place**2) / 25


def triangulation(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A place by its distances from sensors that are nearly on one line."""
    sensors = np.stack([rng.uniform(-6, 6, 3), 0.15 * rng.normal(size=3)], axis=1)
    place = np.array([rng.normal(0, 2), rng.uniform(1.5, 5)])
    sd = rng.uniform(0.2, 0.5)
    y = np.linalg.norm(place - sensors, axis=1) + sd * rng.normal(size=3)
    data = {"sensors": sensors, "y": y, "sd": sd}
    return gridded(_triangulation, {"u": (-15, 15), "v": (-15, 15)}, data)
