"""Posteriors with several modes of other kinds: closed forms and quadrature."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from softcvi_experiments.verdict._mixtures import normals
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import grid_moments


def _students(theta, data):
    z = (theta["x"] - data["means"]) / data["scales"][:, None]
    square = jnp.sum(z**2, axis=-1)
    size, df = theta["x"].size, data["df"]
    tails = -0.5 * (df + size) * jnp.log1p(square / df)
    return logsumexp(data["log_weights"] - size * jnp.log(data["scales"]) + tails)


def _logistics(theta, data):
    z = (theta["x"] - data["means"]) / data["scales"][:, None]
    height = -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z)))
    size = theta["x"].size
    terms = data["log_weights"] - size * jnp.log(data["scales"]) + height.sum(axis=-1)
    return logsumexp(terms)


def _pairs(theta, data):
    # Two normals for each parameter: two to the power of their number modes.
    z = (theta["x"] - data["means"]) / data["sds"]
    terms = jnp.log(data["weights"]) - jnp.log(data["sds"]) - 0.5 * z**2
    return jnp.sum(jnp.logaddexp(terms[0], terms[1]))


def _ripple(x, data, xp=jnp):
    z = (x - data["shift"]) / data["unit"]
    return -0.5 * z**2 + data["height"] * xp.cos(data["waves"] * z)


def _ripples_density(theta, data):
    return jnp.sum(_ripple(theta["x"], data))


def _clustered(x, data, xp=jnp):
    z = (data["y"] - x[..., :1]) * xp.exp(-x[..., 1:])
    rows = -x[..., 1:] - 2.5 * xp.log1p(z**2 / 4)
    prior = (x[..., 0] / 20) ** 2 + ((x[..., 1] - data["log_scale"]) / 0.3) ** 2
    return rows.sum(axis=-1) - 0.5 * prior


def _clustered_density(theta, data):
    return _clustered(theta["x"], data)


def _exchangeable(x, data, xp=jnp):
    terms = [-0.5 * (data["y"] - x[..., i : i + 1]) ** 2 for i in range(2)]
    return xp.logaddexp(*terms).sum(axis=-1) - 0.005 * (x**2).sum(axis=-1)


def _exchangeable_density(theta, data):
    return _exchangeable(theta["x"], data)


def _bananas(theta, data):
    x = (theta["x"] - data["shifts"]) / data["units"][:, None]
    rest = (x[:, 1] - data["bend"] * x[:, 0] ** 2) / 0.5
    heights = -0.5 * (x[:, 0] ** 2 + rest**2) - 2 * jnp.log(data["units"])
    return logsumexp(data["log_weights"] + heights)


def _apart(rng, count: int, size: int, gap: float) -> np.ndarray:
    """Centres none of which is nearer to another than so much."""
    reach = gap
    while True:
        means = rng.normal(0, reach, (count, size))
        distance = np.linalg.norm(means[:, None] - means, axis=-1)
        if distance[~np.eye(count, dtype=bool)].min() > gap:
            return means
        reach *= 1.1


def _weights(rng, count: int) -> np.ndarray:
    return 0.05 + (1 - 0.05 * count) * rng.dirichlet(np.full(count, 1.5))


def islands(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to six separate normals, up to ten times as wide as others, raw units."""
    size, count = ((3, 6), (7, 4), (15, 3), (30, 2))[seed % 4]
    widths = 10 ** rng.uniform(-0.5, 0.5, count)
    means = _apart(rng, count, size, 8 * widths.max())
    unit = 10 ** rng.uniform(-3, 3)
    offset = rng.normal(0, 30, size)
    covariances = [unit**2 * w**2 * np.eye(size) for w in widths]
    return normals(_weights(rng, count), unit * (offset + means), covariances)


def nested(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Three normals around one another, each three to five times as wide."""
    size = (1, 2, 4)[seed % 3]
    widths = np.cumprod([1.0, *rng.uniform(3, 5, 2)])
    means = rng.normal(0, 0.5, (3, size)) * widths[:, None]
    covariances = [w**2 * np.eye(size) for w in widths]
    return normals(_weights(rng, 3), means, covariances)


def string(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Five normals in a row that overlap."""
    size = (2, 6)[seed % 2]
    way = rng.normal(size=size)
    way *= rng.uniform(2, 3.5) / np.linalg.norm(way)
    means = rng.normal(0, 5, size) + np.arange(5)[:, None] * way
    return normals(_weights(rng, 5), means, [np.eye(size)] * 5)


def minor_mode(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal with 2 to 10 % of the mass, far from another as wide."""
    size = (2, 10, 25)[seed % 3]
    way = rng.normal(size=size)
    way *= 10 ** rng.uniform(1, 1.8) / np.linalg.norm(way)
    weight = rng.uniform(0.02, 0.1)
    means = rng.normal(0, 3, size) + np.stack([0 * way, way])
    return normals([1 - weight, weight], means, [np.eye(size)] * 2)


def two_spikes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A slab with two spikes, a third to a twentieth as wide."""
    size = (1, 2, 3)[seed % 3]
    widths = 10 ** -rng.uniform(0.5, 1.3, 2)
    means = np.vstack([np.zeros(size), rng.normal(0, 1, (2, size))])
    covariances = [np.eye(size)] + [w**2 * np.eye(size) for w in widths]
    return normals(_weights(rng, 3), means, covariances)


def student_islands(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to four multivariate t with five degrees of freedom."""
    size, count = ((2, 4), (5, 3), (12, 2))[seed % 3]
    scales, df = 10 ** rng.uniform(-0.4, 0.4, count), 5.0
    means = _apart(rng, count, size, 10 * scales.max())
    weights = _weights(rng, count)
    data = {"means": means, "scales": scales, "df": df, "log_weights": np.log(weights)}
    mean = weights @ means
    inside = np.broadcast_to((scales**2 * df / (df - 2))[:, None], means.shape)
    variance = weights @ (inside + (means - mean) ** 2)
    target = density(_students, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def logistic_islands(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two or three products of logistic densities."""
    size, count = ((2, 3), (8, 2), (20, 2))[seed % 3]
    scales = 10 ** rng.uniform(-0.3, 0.3, count)
    means = _apart(rng, count, size, 15 * scales.max())
    weights = _weights(rng, count)
    data = {"means": means, "scales": scales, "log_weights": np.log(weights)}
    mean = weights @ means
    inside = np.broadcast_to((scales**2 * np.pi**2 / 3)[:, None], means.shape)
    variance = weights @ (inside + (means - mean) ** 2)
    target = density(_logistics, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def independent_pairs(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two to four parameters with two modes each."""
    size = (2, 3, 4)[seed % 3]
    first = rng.uniform(0.25, 0.75, size)
    weights = np.stack([first, 1 - first])
    sds = 10 ** rng.uniform(-0.2, 0.2, (2, size))
    gap = rng.uniform(5, 9, size)
    means = rng.normal(0, 3, size) + np.stack([0 * gap, gap])
    data = {"means": means, "sds": sds, "weights": weights}
    mean = np.sum(weights * means, axis=0)
    variance = np.sum(weights * (sds**2 + (means - mean) ** 2), axis=0)
    target = density(_pairs, {"x": (size,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")


def ripples(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Normals with waves on them: several neighbouring modes per parameter."""
    size = (1, 2, 3)[seed % 3]
    data = {
        "shift": rng.normal(0, 5, size),
        "unit": 10 ** rng.uniform(-1, 1, size),
        "height": rng.uniform(0.5, 2.0, size),
        "waves": rng.uniform(2.0, 5.0, size),
    }
    z = np.linspace(-8, 8, 8001)[:, None]
    height = np.exp(_ripple(data["shift"] + data["unit"] * z, data, np))
    height /= height.sum(axis=0)
    mean = np.sum(height * z, axis=0)
    variance = data["unit"] ** 2 * np.sum(height * (z - mean) ** 2, axis=0)
    target = density(_ripples_density, {"x": (size,)}, data)
    right = {"x": data["shift"] + data["unit"] * mean}, {"x": variance}
    return from_moments(target, *right, "quadrature")


def clustered_data(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A location with t noise and data in two groups: two modes."""
    count = rng.integers(3, 6, 2)
    gap = rng.uniform(5, 10)
    y = np.concatenate(
        [rng.normal(-gap, 0.5, count[0]), rng.normal(gap, 0.5, count[1])]
    )
    data = {"y": y, "log_scale": np.log(rng.uniform(0.6, 1.5))}
    low = np.array([y.min() - 15, data["log_scale"] - 2.5])
    high = np.array([y.max() + 15, data["log_scale"] + 2.5])
    return _on_grid(_clustered, _clustered_density, data, low, high)


def exchangeable(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Means of an even mixture of two normals, which can be exchanged."""
    count = (12, 30)[seed % 2]
    gap = rng.uniform(2.5, 6)
    y = gap * (rng.uniform(size=count) < 0.5) + rng.normal(size=count)
    low, high = np.full(2, y.min() - 25.0), np.full(2, y.max() + 25.0)
    return _on_grid(_exchangeable, _exchangeable_density, {"y": y}, low, high)


def _on_grid(function, log_prob, data: dict, low, high) -> RandomPosterior:
    def heights(x):
        parts = np.array_split(x, 20)
        return np.concatenate([function(part, data, np) for part in parts])

    mean, variance = grid_moments(heights, low, high, points=501)
    target = density(log_prob, {"x": (2,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "quadrature")


def two_bananas(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two bent posteriors side by side."""
    units, bend = 10 ** rng.uniform(-0.2, 0.2, 2), rng.uniform(0.3, 0.8)
    shifts = rng.normal(0, 3, 2) + np.array([[0.0, 0.0], [15.0, rng.normal(0, 4)]])
    weights = _weights(rng, 2)
    data = {
        "shifts": shifts,
        "units": units,
        "bend": bend,
        "log_weights": np.log(weights),
    }
    means = shifts + units[:, None] * np.array([0.0, bend])
    inside = units[:, None] ** 2 * np.array([1.0, 2 * bend**2 + 0.25])
    mean = weights @ means
    variance = weights @ (inside + (means - mean) ** 2)
    target = density(_bananas, {"x": (2,)}, data)
    return from_moments(target, {"x": mean}, {"x": variance}, "closed form")
