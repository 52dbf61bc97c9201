"""Answers by quadrature and by importance sampling, in NumPy's double precision."""

from collections.abc import Callable

import numpy as np
from scipy import optimize, special

_PROPOSAL_DF = 5.0


def normal_grid(
    log_marginal: Callable[[float], tuple[float, np.ndarray, np.ndarray]],
    low: float,
    high: float,
    points: int = 401,
) -> tuple[tuple[float, float], tuple[np.ndarray, np.ndarray]]:
    """Moments where all but one parameter are normal given that one.

    Args:
        log_marginal: Function of the one parameter; returns its log marginal density
            and the conditional means and variances of the others.
        low: Where to begin looking.
        high: Where to end.
        points: Points of the final grid.

    Returns:
        Mean and variance of the one parameter, then of the others.

    Example:
        >>> def normal(h):
        ...     return -0.5 * h**2, np.array([h]), np.array([1.0])
        >>> one, others = normal_grid(normal, -10.0, 10.0)
        >>> [round(float(variance), 6) for variance in (one[1], *others[1])]
        [1.0, 2.0]
    """
    coarse = np.linspace(low, high, 121)
    height = np.array([log_marginal(h)[0] for h in coarse])
    inside = np.flatnonzero(height > height.max() - 25)
    step = coarse[1] - coarse[0]
    low, high = coarse[inside[0]] - step, coarse[inside[-1]] + step
    grid = np.linspace(low, high, points)
    rows = [log_marginal(h) for h in grid]
    weights = special.softmax([row[0] for row in rows])
    means = np.array([row[1] for row in rows])
    variances = np.array([row[2] for row in rows])
    one = weights @ grid
    mean = weights @ means
    return (
        (one, weights @ (grid - one) ** 2),
        (mean, weights @ (variances + (means - mean) ** 2)),
    )


def grid_moments(
    log_prob: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    points: int = 301,
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of a density of two parameters on a grid that is refined.

    Args:
        log_prob: Log density of points along the first axis.
        low: Lower corner of the first grid.
        high: Upper corner.
        points: Points per axis.

    Example:
        >>> far = np.array([-8.0, -8.0]), np.array([8.0, 8.0])
        >>> mean, variance = grid_moments(lambda x: -0.5 * (x**2).sum(axis=1), *far)
        >>> variance.round(6)
        array([1., 1.])
    """
    low, high = np.array(low, float), np.array(high, float)
    for _ in range(3):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        height = log_prob(mesh.reshape(-1, 2)).reshape(points, points)
        height = np.where(np.isnan(height), -np.inf, height)
        for axis in range(2):
            inside = np.flatnonzero(height.max(axis=1 - axis) > height.max() - 20)
            step = axes[axis][1] - axes[axis][0]
            low[axis] = max(low[axis], axes[axis][inside[0]] - step)
            high[axis] = min(high[axis], axes[axis][inside[-1]] + step)
    weights = special.softmax(height)
    flat = mesh.reshape(-1, 2)
    mean = weights.ravel() @ flat
    return mean, weights.ravel() @ (flat - mean) ** 2


def importance_moments(
    rng: np.random.Generator,
    log_prob: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    draws: int = 60_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of a density with one mode of moderate shape.

    A t distribution is placed at the mode, then twice at the moments found.

    Args:
        rng: Source of randomness.
        log_prob: Log density of points along the first axis; scales of order 1.
        start: Where to look for the mode.
        draws: Draws of the proposal.

    Raises:
        ValueError: If the effective sample size stays below 5,000.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> mean, variance = importance_moments(
        ...     rng, lambda x: -0.5 * ((x - 2.0) ** 2).sum(axis=1), np.zeros(2)
        ... )
        >>> bool(np.abs(mean - 2.0).max() < 0.02)
        True
    """
    found = optimize.minimize(lambda b: -log_prob(b[None])[0], start, method="BFGS")
    mean, covariance = found.x, 1.5 * _inverse_hessian(log_prob, found.x)
    for _ in range(3):
        factor = np.linalg.cholesky(covariance)
        normal = rng.normal(size=(draws, mean.size))
        stretch = np.sqrt(_PROPOSAL_DF / rng.chisquare(_PROPOSAL_DF, size=(draws, 1)))
        noise = normal * stretch
        points = mean + noise @ factor.T
        distance = (noise**2).sum(axis=1)
        log_q = -0.5 * (_PROPOSAL_DF + mean.size) * np.log1p(distance / _PROPOSAL_DF)
        parts = np.array_split(points, 12)
        log_p = np.concatenate([log_prob(part) for part in parts])
        weights = special.softmax(log_p - log_q)
        mean = weights @ points
        covariance = np.einsum("i,ij,ik", weights, points - mean, points - mean)
    ess = 1 / np.sum(weights**2)
    if ess < 5_000:
        raise ValueError(
            f"log_prob: only {ess:.0f} effective draws; choose another way"
        )
    return mean, np.diag(covariance)


def _inverse_hessian(log_prob: Callable, x: np.ndarray) -> np.ndarray:
    """Inverse of minus the Hessian, by central differences."""
    size = x.size
    step = 1e-3
    eye = step * np.eye(size)
    hessian = np.empty((size, size))
    for i in range(size):
        corners = [
            x + eye[i] + eye, x + eye[i] - eye, x - eye[i] + eye, x - eye[i] - eye
        ]  # fmt: skip
        upper, left, right, lower = (log_prob(corner) for corner in corners)
        hessian[i] = (upper - left - right + lower) / (4 * step**2)
    return np.linalg.inv(-(hessian + hessian.T) / 2)
