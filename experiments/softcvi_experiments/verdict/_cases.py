"""Named posteriors with published or stated bounds: many modes, many parameters.

Unlike the families these are fixed: a seed only chooses the locations, which are the
same on every machine. Two seeds of one name differ where the name says so.
"""

import numpy as np

from softcvi_experiments.verdict import _mixtures, _normals, _series, _shapes
from softcvi_experiments.verdict._posterior import (
    Quantiles,
    RandomPosterior,
    density,
    from_draws,
)

# Distances, weights of the first, ratios of standard deviations, parameters.
GRID = [
    (distance, weight, ratio, size)
    for size in (2, 5, 10, 20, 50)
    for distance in (3.0, 10.0, 30.0, 100.0)
    for weight in (0.5, 0.8, 0.95)
    for ratio in (0.1, 1.0, 10.0)
]
# Parameters, and how many times narrower the spike is.
SPIKES = [(2, 5.0), (2, 20.0), (2, 50.0), (5, 5.0), (5, 10.0)]


def forty_normals_2(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Forty unit normals on (-40, 40)^2."""
    return _mixtures.boxed(rng, 40, 2, 40.0)


def forty_normals_50(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Forty unit normals on (-40, 40)^50."""
    return _mixtures.boxed(rng, 40, 50, 40.0)


def t_products_10(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ten products of t with two degrees of freedom, ten parameters."""
    return _t_products(rng, 10)


def t_products_50(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Ten products of t with two degrees of freedom, fifty parameters."""
    return _t_products(rng, 50)


def _t_products(rng, size: int) -> RandomPosterior:
    means = rng.uniform(-10, 10, (10, size))
    data = {
        "means": means,
        "scale": 1.0,
        "df": 2.0,
        "log_weights": np.full(10, -np.log(10)),
    }
    label = rng.integers(0, 10, 200_000)
    draws = {"x": means[label] + rng.standard_t(2.0, (200_000, size))}
    target = density(_mixtures.t_products_density, {"x": (size,)}, data)
    return from_draws(target, draws, Quantiles())


def two_normals_grid(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Two normals, one at the origin; the seed is an index of ``GRID``."""
    distance, weight, ratio, size = GRID[seed % len(GRID)]
    direction = rng.normal(size=size)
    shift = distance * direction / np.linalg.norm(direction)
    covariances = [np.eye(size), ratio**2 * np.eye(size)]
    return _mixtures.normals([weight, 1 - weight], [0 * shift, shift], covariances)


def spikes(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A narrow mode with most of the mass in a slab; an index of ``SPIKES``."""
    size, ratio = SPIKES[seed % len(SPIKES)]
    place = rng.normal(size=size)
    covariances = [np.eye(size), np.eye(size) / ratio**2]
    return _mixtures.normals([0.2, 0.8], [np.zeros(size), place], covariances)


def many_well_32(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Sixteen pairs of a double well and a normal."""
    return _mixtures.well_pairs(16)


def many_well_320(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A hundred and sixty pairs of a double well and a normal."""
    return _mixtures.well_pairs(160)


def funnel_10(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """Neal's funnel of ten parameters, the log variance with an sd of 3."""
    return _shapes.neal(rng, 9, 3.0)


def normal_300(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 300 parameters with a condition number of 1e4."""
    return _normals.conditioned(rng, 300, 4.0)


def normal_1000(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A normal of 1000 parameters with a condition number of 1e3."""
    return _normals.conditioned(rng, 1000, 3.0)


def walk_150(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A random walk of 150 points seen with noise."""
    return _series.known_walk(rng, 150)


def walk_500(rng: np.random.Generator, seed: int) -> RandomPosterior:
    """A random walk of 500 points seen with noise."""
    return _series.known_walk(rng, 500)
