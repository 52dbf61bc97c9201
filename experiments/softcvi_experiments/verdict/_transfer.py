"""Answers for chains of single numbers, forwards and backwards on a grid."""

from collections.abc import Callable

import numpy as np
from scipy import special


def chain_moments(
    grid: np.ndarray, rows: np.ndarray, step: Callable[[np.ndarray, np.ndarray], object]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log total, means and variances of a chain whose neighbours depend on each other.

    Args:
        grid: Evenly spaced values that each member may take.
        rows: Log density of each member at each value, what is known of the first one
            included.
        step: Log density of a value given the one before it.

    Example:
        >>> grid = np.linspace(-12, 12, 241)
        >>> rows = np.stack([-0.5 * grid**2, 0 * grid])
        >>> chain_moments(grid, rows, lambda x, before: -0.5 * (x - before) ** 2)[2]
        array([1., 2.])
    """
    width = np.log(grid[1] - grid[0])
    move = np.asarray(step(grid[None, :], grid[:, None]))
    top = move.max()
    kernel = np.exp(move - top)

    def moved(heights: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        peak = heights.max()
        with np.errstate(divide="ignore"):
            return np.log(np.exp(heights - peak) @ kernel) + peak + top + width

    forward, backward = [rows[0]], [np.zeros(grid.size)]
    for row in rows[1:]:
        forward.append(row + moved(forward[-1], kernel))
    for row in rows[:0:-1]:
        backward.append(moved(backward[-1] + row, kernel.T))
    heights = np.array(forward) + np.array(backward[::-1])
    weights = special.softmax(heights, axis=1)
    mean = weights @ grid
    variance = weights @ grid**2 - mean**2
    return float(special.logsumexp(forward[-1]) + width), mean, variance
