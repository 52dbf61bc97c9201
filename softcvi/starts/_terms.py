"""Terms of a log density that is the log of a sum, each to be climbed by itself.

A narrow mode far from a wide one is out of reach of every start: nothing that can be
computed outside of its small basin tells of it. But the program of the log density
does. Where it has the log of a sum of exponentials, as a mixture or a discrete
parameter that was summed out has, each term is a density that can be climbed alone,
and its maximum is a place to start from.
"""

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Scalar

from softcvi._compile import rarely_run
from softcvi.starts._branches import MEAN, WHOLE, Evaluation
from softcvi.starts._double import Density
from softcvi.starts._newton import LocalNormal, newton_path
from softcvi.targets import AbstractTarget
from softcvi.targets._base import AbstractWrapper

# Slope of a sum in the log density below which it is no part of it.
_FLAT = 1e-5
# Choices of all sums at once, over those that are made, up to which any are.
_FEW_FOR_ALL = 32


class TermTarget(AbstractWrapper):
    """A target with some sums of its log density replaced by one of their terms.

    Attributes:
        target: The target.
        choice: For each sum the number of the term, or -1 for the whole sum.
    """

    target: AbstractTarget
    choice: Int[Array, " s"]

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        return Evaluation(self.choice).of(self.target, particle)


def terms_of(target: AbstractTarget, particle: PyTree) -> tuple[int, ...]:
    """Number of terms of each sum, zero for those that are no part of the density.

    Args:
        target: The target.
        particle: Any particle of finite density.
    """
    evaluation = Evaluation(None)
    eqx.filter_eval_shape(lambda p: evaluation.of(target, p), particle)
    counts = np.array(evaluation.counts, int)
    if not len(counts):
        return ()
    slopes = _slopes(particle, jnp.zeros(len(counts)), target)
    # The normaliser of a softmax enters with a minus, a largest term that is taken
    # off and added again not at all.
    is_part = np.asarray(slopes) > _FLAT
    return tuple(np.where(is_part, counts, 0).tolist())


@functools.partial(rarely_run, effort=0)
def _slopes(particle: PyTree, shifts: Float[Array, " s"], target: AbstractTarget):
    # Means of the terms: of the whole only the largest has a slope.
    means = jnp.full(shifts.shape, MEAN, jnp.int32)
    return jax.grad(lambda s: Evaluation(means, s).of(target, particle))(shifts)


def choices(
    rng: np.random.Generator, counts: tuple[int, ...], most: int
) -> Int[np.ndarray, "b s"]:
    """Which terms to climb: each one alone, then one of every sum, if few can be.

    A term of a sum within another one is not alone until both are chosen.

    Args:
        rng: Random generator.
        counts: Number of terms of each sum.
        most: Number of choices at most.
    """
    rows = []
    for site, count in enumerate(counts):
        for term in range(count):
            row = np.full(len(counts), WHOLE)
            row[site] = term
            rows.append(row)
    if len(rows) > most:
        rows = [rows[i] for i in np.sort(rng.permutation(len(rows))[:most])]
    sites = np.flatnonzero(counts)
    together = math.prod(counts[site] for site in sites)
    if len(sites) > 1 and together <= _FEW_FOR_ALL * most:
        numbers = np.sort(rng.permutation(together)[:most])
        picked = np.unravel_index(numbers, [counts[site] for site in sites])
        for terms in np.stack(picked, axis=1):
            row = np.full(len(counts), WHOLE)
            row[sites] = terms
            rows.append(row)
    return np.array(rows, np.int32).reshape(len(rows), len(counts))


@functools.partial(rarely_run, effort=0)
def ascend_terms(
    starts: Float[Array, "b d"], choices: Int[Array, "b s"], density: Density
) -> LocalNormal:
    """Climb from each start the sum's term that is chosen for it."""

    def climb(start, choice):
        term = TermTarget(density.target, choice)
        return newton_path(eqx.tree_at(lambda d: d.target, density, term), start)

    return jax.vmap(climb)(starts, choices)
