"""Draws as named columns of numbers, which is what tables and charts want."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcvi.diagnostics._summary import label_of

Columns = dict[str, np.ndarray]


def as_columns(draws: Mapping[str, Any], most: int | None = None) -> Columns:
    """One column for each scalar of each named array.

    Args:
        draws: Arrays with a leading axis of draws.
        most: Columns to make at most.

    Example:
        >>> import numpy as np
        >>> list(as_columns({"mu": np.zeros(3), "beta": np.zeros((3, 2))}))
        ['mu', 'beta[0]', 'beta[1]']
    """
    columns: Columns = {}
    for name, values in draws.items():
        array = np.asarray(values)
        for index in np.ndindex(array.shape[1:]):
            if most is not None and len(columns) >= most:
                return columns
            columns[label_of(name, index, draws)] = array[(slice(None), *index)]
    return columns


def is_discrete(column: np.ndarray) -> bool:
    """Whether a column holds few distinct whole numbers."""
    if np.issubdtype(column.dtype, np.integer) or column.dtype == bool:
        return True
    finite = column[np.isfinite(column)]
    return bool(np.all(finite == np.round(finite))) and np.unique(finite).size <= 30


def shown_range(columns: list[np.ndarray]) -> tuple[float, float]:
    """The range that holds 99 per cent of each column."""
    finite = [np.asarray(c, float)[np.isfinite(c)] for c in columns]
    ends = [np.quantile(c, [0.005, 0.995]) for c in finite if c.size]
    if not ends:
        return -1.0, 1.0
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    pad = 0.05 * (high - low) or max(abs(low), 1.0) * 0.5
    return float(low - pad), float(high + pad)


def density(
    column: np.ndarray,
    low: float,
    high: float,
    weights: np.ndarray | None = None,
    points: int = 128,
) -> tuple[np.ndarray, np.ndarray]:
    """A smooth density of a column on a grid.

    Args:
        column: The numbers.
        low: Where the grid begins.
        high: Where it ends.
        weights: Weights that sum to one; equal by default.
        points: Points of the grid.

    Returns:
        Grid and density.

    Example:
        >>> import numpy as np
        >>> grid, height = density(np.random.default_rng(0).normal(size=4000), -3, 3)
        >>> bool(abs(height.max() - 0.4) < 0.04)
        True
    """
    from scipy.stats import gaussian_kde

    column = np.asarray(column, float)
    keep = np.isfinite(column)
    column, weights = column[keep], None if weights is None else weights[keep]
    grid = np.linspace(low, high, points)
    if column.size < 2 or not np.ptp(column) > 0:
        return grid, np.zeros(points)
    sd = float(np.sqrt(np.cov(column, aweights=weights)))
    effective = column.size if weights is None else 1 / np.sum(weights**2)
    # Not narrower than the grid can show.
    least = 1.5 * (high - low) / (4 * points)
    wanted = max(0.9 * _spread(column) * effective**-0.2, least)
    kernels = gaussian_kde(column, bw_method=wanted / sd, weights=weights)
    return grid, kernels(grid)


def _spread(column: np.ndarray) -> float:
    """Standard deviation of the densest quarter, were it the middle of a normal.

    That of all draws would smear several narrow modes into one.
    """
    ordered = np.sort(column)
    quarter = max(1, len(ordered) // 4)
    if len(ordered) <= quarter:
        return 0.0
    narrowest = float(np.min(ordered[quarter:] - ordered[:-quarter]))
    return min(float(np.std(column)), narrowest / 0.637)
