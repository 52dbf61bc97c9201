"""Mixtures of normals and of t, near and far: closed forms."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def _normals(theta, data):
    # Each component has a factor A with precision A A^T.
    z = jnp.einsum("kij,ki->kj", data["factor"], theta["x"] - data["means"])
    return logsumexp(data["log_height"] - 0.5 * jnp.sum(z**2, axis=-1))


def t_products_density(theta, data):
    """Log density of a mixture of products of t."""
    z = (theta["x"] - data["means"]) / data["scale"]
    tails = jnp.log1p(z**2 / data["df"]).sum(axis=-1)
    return logsumexp(data["log_weights"] - 0.5 * (data["df"] + 1) * tails)


def _wells(theta, data):
    x, y = theta["x"], theta["y"]
    return jnp.sum(0.5 * x + 6 * x**2 - x**4) - 0.5 * jnp.sum(y**2)


def normals(weights, means, covariances) -> RandomPosterior:
    """A mixture of normals with its exact means and variances.

    Example:
        >>> case = normals([0.5, 0.5], [[-1.0], [1.0]], [np.eye(1)] * 2)
        >>> round(float(case.spread["x"][0] ** 2), 6)
        2.0
    """
    weights, means = np.asarray(weights, float), np.asarray(means, float)
    covariances = np.asarray(covariances, float)
    factors = np.linalg.cholesky(np.linalg.inv(covariances))
    log_dets = np.linalg.slogdet(covariances)[1]
    data = {
        "means": means,
        "factor": factors,
        "log_height": np.log(weights) - 0.5 * log_dets,
    }
    target = density(_normals, {"x": means.shape[1:]}, data)
    mean = weights @ means
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    variance = weights @ (diagonals + (means - mean) ** 2)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def _direction(rng, size: int) -> np.ndarray:
    v = rng.normal(size=size)
    return v / np.linalg.norm(v)


def _random_covariance(rng, size: int) -> np.ndarray:
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return rotation @ np.diag(10 ** rng.uniform(-0.6, 0.6, size)) @ rotation.T


def two_symmetric(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two unit normals on both sides of the origin, 3 to 60 sd apart."""
    size = (2, 5, 20)[seed % 3]
    shift = 0.5 * 10 ** rng.uniform(0.5, 1.8) * _direction(rng, size)
    weight = rng.uniform(0.05, 0.95)
    return normals([weight, 1 - weight], [shift, -shift], [np.eye(size)] * 2)


def two_offset(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """One normal at the origin, another 3 to 100 sd away, narrower or wider."""
    size = (2, 5, 10, 20)[seed % 4]
    shift = 10 ** rng.uniform(0.5, 2) * _direction(rng, size)
    weight, ratio = rng.uniform(0.05, 0.95), 10 ** rng.uniform(-1, 1)
    covariances = [np.eye(size), ratio**2 * np.eye(size)]
    return normals([weight, 1 - weight], [0 * shift, shift], covariances)


def few_near(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Three overlapping normals with random covariances, in raw units."""
    size = (2, 5, 10)[seed % 3]
    unit = 10 ** rng.uniform(-3, 4)
    means = rng.normal(0, 10, size) + rng.normal(0, 1.2, (3, size))
    covariances = [_random_covariance(rng, size) for _ in range(3)]
    weights = rng.dirichlet(np.full(3, 3.0))
    return normals(weights, unit * means, unit**2 * np.array(covariances))


def few_far(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Four separate normals with random covariances, in raw units."""
    size = (2, 5, 12)[seed % 3]
    unit = 10 ** rng.uniform(-3, 4)
    means = rng.normal(0, 20, size) + rng.normal(
        0, 10 ** rng.uniform(0.7, 1.5), (4, size)
    )
    covariances = [_random_covariance(rng, size) for _ in range(4)]
    weights = rng.dirichlet(np.full(4, 2.0))
    return normals(weights, unit * means, unit**2 * np.array(covariances))


def five_unequal(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Five normals of very different widths around a common middle."""
    size = (2, 4, 8)[seed % 3]
    widths = 10 ** rng.uniform(-1, 1, 5)
    means = rng.normal(0, 6, (5, size))
    covariances = widths[:, None, None] ** 2 * np.eye(size)
    return normals(rng.dirichlet(np.full(5, 2.0)), means, covariances)


def twelve(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Twelve unit normals in a box of side 40."""
    size = (2, 6)[seed % 2]
    return boxed(rng, 12, size, 20.0)


def forty(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Forty unit normals in a box of side 80."""
    size = (2, 10)[seed % 2]
    return boxed(rng, 40, size, 40.0)


def boxed(
    rng: np.random.Generator, count: int, size: int, half: float
) -> RandomPosterior:
    """Unit normals of equal weight at random places in a box."""
    means = rng.uniform(-half, half, (count, size))
    return normals(np.full(count, 1 / count), means, [np.eye(size)] * count)


def spike_wide(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A slab with a spike of a third to a tenth of its width, inside it."""
    return _spike(rng, (2, 5)[seed % 2], rng.uniform(0.5, 1.0))


def spike_narrow(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A slab with a spike of a tenth to a fiftieth of its width, inside it."""
    size = (2, 3)[seed % 2]
    return _spike(rng, size, rng.uniform(1.0, 1.7))


def _spike(rng, size: int, log_ratio: float) -> RandomPosterior:
    weight, width = rng.uniform(0.1, 0.9), 10**-log_ratio
    place = rng.uniform(0.5, 2.0) * _direction(rng, size)
    covariances = [np.eye(size), width**2 * np.eye(size)]
    return normals([weight, 1 - weight], [np.zeros(size), place], covariances)


def t_products(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ten products of t with 3 to 6 degrees of freedom in a box of side 20."""
    size = (2, 6)[seed % 2]
    df, means = rng.uniform(3, 6), rng.uniform(-10, 10, (10, size))
    weights = np.full(10, 0.1)
    data = {"means": means, "scale": 1.0, "df": df, "log_weights": np.log(weights)}
    mean = weights @ means
    variance = weights @ (df / (df - 2) + (means - mean) ** 2)
    target = density(t_products_density, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def wells(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Many-well: 2 to 6 pairs of a double well and a normal."""
    return well_pairs((2, 4, 6)[seed % 3])


def well_pairs(pairs: int) -> RandomPosterior:
    """Pairs of a double well and a normal."""
    grid = np.linspace(-4, 4, 20_001)
    height = np.exp(0.5 * grid + 6 * grid**2 - grid**4)
    height /= height.sum()
    mean = height @ grid
    variance = height @ (grid - mean) ** 2
    target = density(_wells, {"x": (pairs,), "y": (pairs,)}, {"none": 0.0})
    right = {"x": np.full(pairs, mean), "y": np.zeros(pairs)}
    spread = {"x": np.full(pairs, variance), "y": np.ones(pairs)}
    return from_moments(target, right, spread, "quadrature")
