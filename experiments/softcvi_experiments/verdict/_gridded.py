"""Posteriors of two parameters whose answer is from a grid of their own density."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi_experiments.verdict._posterior import (
    RandomPosterior,
    density,
    from_moments,
)
from softcvi_experiments.verdict._quadrature import grid_moments

_BATCH = 5_000


def gridded(
    log_prob: Callable,
    box: Mapping[str, tuple[float, float]],
    data: Mapping[str, Any],
    points: int = 401,
) -> RandomPosterior:
    """A posterior of two scalars with its means and variances.

    Args:
        log_prob: Module-level function of the sites and of the data.
        box: Name of each site, and where to look for it.
        data: Arrays by name.
        points: Points per axis.

    Example:
        >>> def log_prob(theta, data):
        ...     return -0.5 * theta["a"] ** 2 - 0.5 * (theta["b"] / data["sd"]) ** 2
        >>> box = {"a": (-8, 8), "b": (-20, 20)}
        >>> case = gridded(log_prob, box, {"sd": 2.0}, points=101)
        >>> round(float(case.spread["b"]), 3)
        2.0
    """
    target = density(log_prob, dict.fromkeys(box, ()), data)
    heights = jax.jit(
        jax.vmap(lambda x: log_prob(dict(zip(box, x, strict=True)), target.observed))
    )

    def on_host(x: np.ndarray) -> np.ndarray:
        rows = [
            np.asarray(heights(jnp.asarray(np.resize(some, (_BATCH, 2)), float)))
            for some in np.split(x, range(_BATCH, len(x), _BATCH))
        ]
        return np.concatenate(rows)[: len(x)].astype(np.float64)

    low, high = np.array(list(box.values()), float).T
    found = grid_moments(on_host, low, high, points)
    mean, variance = (dict(zip(box, values, strict=True)) for values in found)
    return from_moments(target, mean, variance, "quadrature")
