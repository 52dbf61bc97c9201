"""Whether an answer stays as it is when parameters are drawn anew, a few at a time."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from softcvi.targets._rounding import LogDensities

# Scales of the proposals, in standard deviations of the answer.
_SCALES = np.array([0.5, 2.0, 10.0, 50.0])
# Further out no number is drawn; Cauchy proposals would overflow a model.
_FURTHEST = 1e4
# Proposals for each draw, beside the values that it has.
_PROPOSALS = 31
# Moves for each parameter. In every other one two parameters are drawn together: one
# may be free only where another one has gone.
_MOVES = 2
# Rounds of these, and what change asks for another round: the way to a part that was
# missed may be narrow, so that few draws have taken it yet.
ROUNDS, _DOUBTFUL = 4, 0.1
# Draws at most, and the fewest that show a change of a few per cent of them.
_DRAWS, _FEWEST = 4000, 500
# Standard errors that are subtracted from a change.
_ERRORS = 2.0
_HALF = (0.16, 0.5, 0.84)

# Times that another value is chosen where the first one's height is an error.
_CHOICES = 8

AreErrors = Callable[
    [Float[np.ndarray, "n d"], Float[np.ndarray, " n"]], Bool[np.ndarray, " n"]
]


class RedrawCheck(eqx.Module):
    """How an answer changes when its parameters are drawn anew, beyond errors.

    Attributes:
        shift: Largest change of a mean, in standard deviations.
        spread: Ratio of a standard deviation of the answer to the one after it, the
            one furthest from 1.

    Example:
        >>> from softcvi.diagnostics import Evidence, RedrawCheck, judge
        >>> judge(Evidence(redrawn=RedrawCheck(shift=0.0, spread=0.4))).trusted
        False
    """

    shift: float
    spread: float

    @property
    def is_doubtful(self) -> bool:
        """Whether something has changed, and may go on to change."""
        return max(self.shift, abs(math.log(self.spread))) > _DOUBTFUL


def num_redrawn(dim: int, evaluations: int) -> int:
    """Draws that a number of evaluations is enough for; 0 if those are too few.

    Args:
        dim: Number of parameters.
        evaluations: Log densities that can be afforded.
    """
    number = min(_DRAWS, evaluations // (_MOVES * dim * _PROPOSALS + 1))
    return number if number >= _FEWEST else 0


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def redraw(
    rng: np.random.Generator,
    log_densities: LogDensities,
    draws: Float[np.ndarray, "n d"],
    weights: Float[np.ndarray, " n"] | None,
    number: int,
    are_errors: AreErrors,
    rounds: int = ROUNDS,
) -> RedrawCheck | None:
    """Draw one or two parameters of each draw anew, many times, and compare.

    Values are chosen by their weights among wide proposals and the present ones
    (iterated sampling importance resampling within Gibbs; Andrieu, Lee and Vihola,
    2018), which leaves the posterior as it is. Draws of a wrong answer move towards the
    posterior, also over what chains of small steps do not cross: a slope may be known
    by its prior only where a break lies beyond the data.

    Args:
        rng: Random generator.
        log_densities: Log densities of vectors in the fitting space.
        draws: Draws of the answer.
        weights: Their weights; equal ones by default.
        number: Of the draws, how many are moved.
        are_errors: Which log densities at vectors are rounding errors: far out one may
            be a small difference of huge numbers.
        rounds: Of moves of each parameter, as long as there is a change that may go on.

    Returns:
        What has changed; None where no draw has a density.
    """
    weights = np.ones(len(draws)) if weights is None else weights
    chosen = rng.choice(len(draws), number, p=weights / np.sum(weights))
    before = draws[chosen]
    heights = log_densities(before)
    is_known = np.isfinite(heights)
    is_known &= ~are_errors(before, heights)
    before, heights = before[is_known], heights[is_known]
    if len(before) < _FEWEST:
        return None
    low, centre, high = np.quantile(before, _HALF, axis=0)
    scale = np.maximum((high - low) / 2, np.finfo(float).tiny)
    dim, after = before.shape[1], before.copy()
    check = RedrawCheck(0.0, 1.0)
    for _ in range(rounds):
        for move in range(_MOVES * dim):
            together = min(dim, 1 + move % 2)
            which = np.argsort(rng.random(before.shape), axis=1)[:, :together]
            units = centre[which], scale[which]
            pool = _proposed(rng, log_densities, after, heights, which, units)
            after, heights = _chosen(rng, pool, after, heights, which, are_errors)
        check = _compared(before, after)
        if not check.is_doubtful:
            break
    return check


class _Pool(NamedTuple):
    """Values of the chosen parameters, the present ones first; heights and weights."""

    values: Float[np.ndarray, "n k p"]
    heights: Float[np.ndarray, "n k"]
    log_weights: Float[np.ndarray, "n k"]


def _proposed(rng, log_densities, points, heights, which, units) -> _Pool:
    centre, scale = units
    shape = (len(points), _PROPOSALS, which.shape[1])
    steps = rng.choice(_SCALES, shape) * rng.standard_cauchy(shape)
    steps = np.clip(steps, -_FURTHEST, _FURTHEST)
    values = np.take_along_axis(points, which, axis=1)
    steps = np.concatenate([((values - centre) / scale)[:, None], steps], axis=1)
    proposed = centre[:, None] + scale[:, None] * steps
    proposed[:, 0] = values
    others = np.repeat(points[:, None], _PROPOSALS, axis=1)
    np.put_along_axis(others, which[:, None], proposed[:, 1:], axis=2)
    found = log_densities(others.reshape(-1, points.shape[1]))
    heights = np.column_stack([heights, found.reshape(shape[:2])])
    log_weights = heights - _log_proposal(steps)
    log_weights = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    return _Pool(proposed, heights, log_weights)


def _chosen(rng, pool, points, heights, which, are_errors):
    """Each point with values from its pool, and its new height.

    A height that is an error is no height: another value is chosen instead.
    """
    points, heights = points.copy(), heights.copy()
    scores = pool.log_weights + rng.gumbel(size=pool.log_weights.shape)
    left = np.arange(len(points))
    for _ in range(_CHOICES):
        best = np.argmax(scores[left], axis=1)
        left, best = left[best > 0], best[best > 0]
        if not len(left):
            break
        moved = points[left]
        np.put_along_axis(moved, which[left], pool.values[left, best], axis=1)
        found = pool.heights[left, best]
        is_error = are_errors(moved, found)
        points[left[~is_error]], heights[left[~is_error]] = (
            moved[~is_error],
            found[~is_error],
        )
        scores[left[is_error], best[is_error]] = -np.inf
        left = left[is_error]
    return points, heights


def _log_proposal(steps: np.ndarray) -> np.ndarray:
    """Log density of the proposals, but for a constant; the clipped ones have none."""
    density = sum(1 / (scale + steps**2 / scale) for scale in _SCALES)
    density = np.sum(np.log(density), axis=-1)
    is_clipped = np.any(np.abs(steps) >= _FURTHEST, axis=-1)
    return np.where(is_clipped, np.inf, density)


def _compared(before: np.ndarray, after: np.ndarray) -> RedrawCheck:
    """Changes of means and standard deviations beyond their errors."""
    deviations = np.std(before, axis=0)
    varies = deviations > 0
    mean, deviations = np.mean(before, axis=0)[varies], deviations[varies]
    one = (before[:, varies] - mean) / deviations
    other = (after[:, varies] - mean) / deviations
    growth = _beyond_errors(other**2 - one**2)
    spread = np.sqrt(np.maximum(1 + growth, np.finfo(float).tiny))
    shift = np.abs(_beyond_errors(other - one)) / np.maximum(spread, 1.0)
    furthest = spread[np.argmax(np.abs(np.log(spread)))] if len(spread) else 1.0
    return RedrawCheck(float(np.max(shift, initial=0.0)), float(1 / furthest))


def _beyond_errors(changes: np.ndarray) -> np.ndarray:
    mean = np.mean(changes, axis=0)
    error = np.std(changes, axis=0) / np.sqrt(len(changes))
    return np.sign(mean) * np.maximum(np.abs(mean) - _ERRORS * error, 0.0)
