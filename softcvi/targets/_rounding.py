"""Log densities that are rounding errors."""

from collections.abc import Callable

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float

# Neighbours of a point, which differ by so many units in the last place.
_NEIGHBOURS, _LAST_DIGITS = 8, 16.0
# Times that points are compared with their neighbours, while some are errors.
_ROUNDS = 16
# A log density that changes by so many nats is an error.
NATS = 10.0

LogDensities = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, " n"]]


def are_errors(
    rng: np.random.Generator,
    log_densities: LogDensities,
    points: Float[np.ndarray, "n d"],
    heights: Float[np.ndarray, " n"],
    eps: float,
    nats: Float[ArrayLike, "*n"] = NATS,
    rounds: int = _ROUNDS,
) -> Bool[np.ndarray, " n"]:
    """Where a log density is a rounding error: it differs from that right beside it.

    Far out a log density may be a small difference of huge numbers, of any height. One
    that is huge itself has no digits for nats. Errors are rounded themselves, so that
    neighbours may agree by chance: as long as some are found the others are compared
    with further neighbours.

    Args:
        rng: Random generator.
        log_densities: Log densities of vectors in the fitting space.
        points: Where to look.
        heights: Log densities there.
        eps: Relative rounding of the parameters.
        nats: Difference from which on it counts, of each.
        rounds: Times that points are compared with neighbours at most.
    """
    is_error = np.zeros(len(points), bool)
    nats = np.broadcast_to(nats, len(points))
    for _ in range(rounds):
        left = np.flatnonzero(~is_error)
        if not len(left):
            break
        beside = _heights_beside(rng, log_densities, points[left], eps)
        own = heights[left]
        with np.errstate(invalid="ignore"):  # between infinities
            is_steady = np.all(np.abs(beside - own) < nats[left], axis=0)
        is_error[left] = ~is_steady | ~(np.abs(own) * eps < nats[left])
        if not np.any(is_error[left]):
            break
    return is_error


def _heights_beside(rng, log_densities: LogDensities, points: np.ndarray, eps: float):
    """Log densities of some neighbours of each point."""
    shape = (_NEIGHBOURS, *points.shape)
    beside = points * (1 + _LAST_DIGITS * eps * rng.uniform(-1, 1, shape))
    return log_densities(beside.reshape(-1, points.shape[1])).reshape(_NEIGHBOURS, -1)
