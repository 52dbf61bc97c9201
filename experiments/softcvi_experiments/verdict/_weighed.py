"""Answers by importance sampling in standard units, for posteriors in raw ones."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._lattice import in_double, split
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import importance_moments


def weighed(
    rng: np.random.Generator,
    log_prob: Callable,
    shapes: Mapping[str, tuple[int, ...]],
    data: Mapping[str, Any],
    unit: Mapping[str, Any],
    middle: Mapping[str, Any] | None = None,
) -> RandomPosterior:
    """A posterior with one mode of moderate shape.

    Args:
        rng: Source of randomness.
        log_prob: Module-level function of the sites and of the data.
        shapes: Shape of each site.
        data: Arrays by name.
        unit: Size of sites that are not of order one.
        middle: About where sites are that are not near zero.

    Example:
        >>> def log_prob(theta, data):
        ...     return -0.5 * jnp.sum((theta["a"] / data["sd"]) ** 2)
        >>> rng, data = np.random.default_rng(0), {"sd": 50.0}
        >>> case = weighed(rng, log_prob, {"a": (2,)}, data, {"a": 50.0})
        >>> bool(np.abs(case.spread["a"] / 50 - 1).max() < 0.02)
        True
    """
    scale = _flat(dict.fromkeys(shapes, 1.0) | dict(unit), shapes)
    centre = _flat(middle or {}, shapes)
    heights = in_double(log_prob, shapes, data)
    found = importance_moments(
        rng, lambda z: heights(centre + scale * z), np.zeros(scale.size)
    )
    target = density(log_prob, shapes, data)
    mean = split(centre + scale * found[0], shapes)
    variance = split(scale**2 * found[1], shapes)
    return from_moments(target, mean, variance, "importance sampling")


def _flat(values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]):
    rows = [np.broadcast_to(values.get(n, 0.0), s) for n, s in shapes.items()]
    return np.concatenate([np.ravel(row) for row in rows])


def raw_design(rng: np.random.Generator, rows: int, size: int, reach: float):
    """Standard predictors, raw ones, and the units of the coefficients.

    Args:
        rng: Source of randomness.
        rows: Number of rows.
        size: Number of coefficients, the intercept's included.
        reach: Units are between ten to minus and plus this power.

    Example:
        >>> z, x, unit = raw_design(np.random.default_rng(0), 5, 2, 3.0)
        >>> bool(np.allclose(x * unit, z))
        True
    """
    z = np.column_stack([np.ones(rows), rng.normal(size=(rows, size - 1))])
    scale = np.append(1.0, 10 ** rng.uniform(-reach, reach, size - 1))
    return z, z * scale, 1 / scale


def normal_prior(value, sd):
    """Log density of independent normals around zero, but for a constant.

    Example:
        >>> float(normal_prior(jnp.array([2.0, 2.0]), 2.0))
        -1.0
    """
    return -0.5 * jnp.sum((value / sd) ** 2)
