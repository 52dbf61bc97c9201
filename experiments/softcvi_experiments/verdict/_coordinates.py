"""Answers on lattices that are laid along other coordinates than the sites."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

from softcvi_experiments.verdict._lattice import (
    Given,
    in_double,
    lattice_moments,
    split,
)
from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)


def turned(
    log_prob: Callable,
    shapes: Mapping[str, tuple[int, ...]],
    data: Mapping[str, Any],
    box: tuple[np.ndarray, np.ndarray],
    sites_of: Callable[[np.ndarray], np.ndarray],
    points: int = 81,
) -> RandomPosterior:
    """A posterior whose sites are a linear function of the axes of the lattice.

    Args:
        log_prob: Module-level function of the sites and of the data.
        shapes: Shape of each site.
        data: Arrays by name.
        box: Lower and upper corner of the lattice.
        sites_of: From points of the lattice, along the first axis, to sites.
        points: Points per axis.

    Example:
        >>> def log_prob(theta, data):
        ...     a, b = theta["x"]
        ...     return -0.5 * (1e6 * (a - b) ** 2 + (a + b) ** 2)
        >>> def sites_of(u):
        ...     return np.stack([u[:, 0] + u[:, 1], u[:, 0] - u[:, 1]], axis=1)
        >>> box = np.array([-5.0, -0.01]), np.array([5.0, 0.01])
        >>> turned(log_prob, {"x": (2,)}, {}, box, sites_of).spread["x"].round(3)
        array([0.5, 0.5])
    """
    heights = in_double(log_prob, shapes, data)

    def conditional(u: np.ndarray) -> Given:
        x = sites_of(u)
        return heights(x), x, np.zeros_like(x)

    axes = len(box[0])
    found = lattice_moments(conditional, *box, points)
    mean, variance = (split(values[axes:], shapes) for values in found)
    return from_moments(density(log_prob, shapes, data), mean, variance, "quadrature")


def each(rows: np.ndarray, x: np.ndarray) -> Given:
    """Log total, means and variances of parameters that are independent given others.

    Args:
        rows: Log densities of shape (points, parameters, values).
        x: Evenly spaced values.

    Example:
        >>> x = np.linspace(-9, 11, 401)
        >>> _, mean, variance = each(-0.5 * (x[None, None] - 1) ** 2, x)
        >>> mean.round(3).tolist(), variance.round(3).tolist()
        ([[1.0]], [[1.0]])
    """
    total = special.logsumexp(rows, axis=2)
    weights = np.exp(rows - total[:, :, None])
    mean = weights @ x
    variance = np.einsum("nix,nix->ni", weights, (x - mean[:, :, None]) ** 2)
    return total.sum(axis=1), mean, variance


def normal(u: np.ndarray, mean: Any, sd: Any) -> np.ndarray:
    """Log density of independent normals at points of a lattice, but for a constant.

    Example:
        >>> normal(np.array([[3.0, 0.0]]), [1.0, 0.0], [2.0, 1.0])
        array([-0.5])
    """
    return -0.5 * np.sum(((u - mean) / sd) ** 2, axis=1)


def allocations(
    heights: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of a mixture over all ways to fill in what was not seen.

    Args:
        heights: Log weight of each way.
        means: Means given each way, one row each.
        variances: Variances given each way.

    Example:
        >>> allocations(np.zeros(2), np.array([[-1.0], [1.0]]), np.ones((2, 1)))
        (array([0.]), array([2.]))
    """
    weights = special.softmax(heights)
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)
