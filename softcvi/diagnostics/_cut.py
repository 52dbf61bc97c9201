"""Whether an answer ends where its log density becomes NaN, and not where it falls."""

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, PRNGKeyArray

from softcvi._compile import as_array
from softcvi.diagnostics._precision import LENGTHS, LINES, log_densities_on_lines
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

# Nats: where a density has fallen by more, little mass can lie beyond.
_LARGEST_FALL = 2.0
# How far lines go beyond a draw, in distances between draws. With many parameters a
# density falls soon, and only the short ones stay where it is dense.
_STRETCHES = (1.0, 0.1)
# Sets of lines, and how often the place where NaN begins is looked at more closely; by
# whether there is a gradient: what has none may be costly.
_EFFORT = {True: (2, 2), False: (1, 1)}


def cut_share(
    key: PRNGKeyArray, target: AbstractTarget, draws: Float[ArrayLike, "n d"]
) -> float:
    """Share of the lines through draws that meet NaN before the density has fallen.

    NaN counts as no mass. That is right outside of the support, and wrong where a model
    fails without a word: the answer is then about the part that is left. A density that
    falls to zero before it becomes NaN is not cut.

    Args:
        key: Random key.
        target: The posterior.
        draws: Draws of the answer, as vectors in the fitting space.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np, softcvi
        >>> like = jnp.zeros(1)
        >>> cut = softcvi.DensityTarget(lambda x: jnp.sum(x + 0 * jnp.log(-x)), like)
        >>> draws = -np.random.default_rng(0).exponential(size=(1000, 1))
        >>> cut_share(jax.random.key(0), cut, draws) > 0.1
        True
    """
    draws, rng = np.asarray(draws, np.float64), numpy_generator(key)
    sets, refinements = _EFFORT[bool(target.has_gradient)]
    shares = []
    for stretch in _STRETCHES:
        ones, others = draws[rng.choice(len(draws), (2, sets, LINES))]
        steps = stretch * (ones - others)
        met = [_meet(target, *a, refinements) for a in zip(ones, steps, strict=True)]
        shares.append(np.mean(met))
    return float(np.max(shares))


def _meet(
    target: AbstractTarget, centres: np.ndarray, steps: np.ndarray, refinements: int
) -> np.ndarray:
    """Lines on which NaN begins where it is about as dense as at the draw."""
    first, last = centres - steps, centres + steps
    values = _between(target, first, last)
    least = values[:, values.shape[1] // 2] - _LARGEST_FALL
    is_met = np.ones(len(centres), bool)
    for refinement in range(1 + refinements):
        edges = _edges(values, least[:, None])
        is_met &= np.any(edges, axis=1)
        if refinement == refinements or not np.any(is_met):
            break
        # From the point before the first edge to the one after it.
        at, cells = np.argmax(edges, axis=1)[:, None], edges.shape[1]
        first, last = (
            first + (last - first) * at / cells,
            first + (last - first) * (at + 1) / cells,
        )
        values = _between(target, first, last)
    return is_met


def _edges(values: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Pairs of neighbours of which one is NaN, and the other is dense."""
    is_nan, is_dense = np.isnan(values), values > least
    after = is_nan[:, 1:] & is_dense[:, :-1]
    return after | (is_nan[:, :-1] & is_dense[:, 1:])


def _between(target: AbstractTarget, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Log densities on lines, by a program that is compiled already."""
    centres = (first + last) / 2
    ends = (centres, centres + (last - first) / LENGTHS[0])
    dtype = np.result_type(*target.structure.dtypes)
    values, _ = log_densities_on_lines(target, *(as_array(e, dtype) for e in ends))
    return np.asarray(values[0], np.float64)
