"""Parts of a log density's program that are climbed by themselves: terms, conditions.

A narrow mode far from a wide one is out of reach of every start: no value of the
density outside of its small basin shows it. But the program of the log density may
contain it. Where it has the log of a sum of exponentials, as a mixture or a discrete
parameter that was summed out has, each term is a density that can be climbed alone,
and its maximum is a place to start from. Where it sets the density to zero unless a
condition holds, the distance from the condition can be climbed, up to a point inside
the support.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Scalar

from softcvi._compile import as_array, rarely_run
from softcvi.starts._branches import MEAN, WHOLE, Evaluation
from softcvi.starts._double import Density
from softcvi.starts._importance import LogDensity
from softcvi.starts._newton import LocalNormal, hessian_and_gradient, newton_path
from softcvi.targets import AbstractTarget
from softcvi.targets._base import AbstractWrapper

# A sum counts as part of the log density if the slope with respect to it exceeds this.
_FLAT = 1e-5
# One term of every sum at once is tried only if the number of combinations is at most
# this multiple of the number that is tried.
_FEW_FOR_ALL = 32
# Newton steps to a condition, and the least curvature, as a share of the largest.
_STEPS = 60
_FLOOR = 1e-6
# The support is searched for if fewer far points than this share have a density.
_MOSTLY_OUTSIDE = 0.5
# Most conditions that are tried one by one, and starts for each.
_MOST_CONDITIONS, _TRIES = 64, 4
# Distances beyond the border, relative to the distance to it.
_BEYOND = np.concatenate([[0.0], 2.0 ** np.arange(-24, 1)])


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
    slopes = _slopes(particle, as_array(np.zeros(len(counts))), target)
    # The normaliser of a softmax has a negative slope, and a maximum that is subtracted
    # and added again has none.
    is_part = np.asarray(slopes) > _FLAT
    return tuple(np.where(is_part, counts, 0).tolist())


@functools.partial(rarely_run, effort=0)
def _slopes(particle: PyTree, shifts: Float[Array, " s"], target: AbstractTarget):
    # The mean of the terms: in the sum itself only the largest term has a slope.
    means = jnp.full(shifts.shape, MEAN, jnp.int32)
    return jax.grad(lambda s: Evaluation(means, s).of(target, particle))(shifts)


def choices(
    rng: np.random.Generator, counts: tuple[int, ...], most: int
) -> Int[np.ndarray, "b s"]:
    """Which terms to climb: each alone, then one of every sum, if there are few.

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


class _ConditionTarget(AbstractWrapper):
    """A target whose log density is how far one condition is from being met."""

    target: AbstractTarget
    which: Int[Array, ""]

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        return -jnp.take(_needs(self.target, particle), self.which)


def _needs(target: AbstractTarget, particle: PyTree) -> Float[Array, " c"]:
    evaluation = Evaluation(None)
    evaluation.of(target, particle)
    found = [jnp.ravel(need) for need in evaluation.conditions]
    # All that the support asks for at once comes first.
    together = [jnp.sum(jnp.stack(evaluation.needs))[None]] if evaluation.needs else []
    return jnp.concatenate([*together, *found, jnp.zeros(0)])


def inner_starts(
    density: Density,
    log_density: LogDensity,
    points: Float[np.ndarray, "b d"],
    far: Float[np.ndarray, "n d"],
) -> Iterator[Float[np.ndarray, "b d"]]:
    """Starts inside a support that is a small part of the space, in batches.

    Args:
        density: The density.
        log_density: The same, compiled for many points.
        points: Where to begin, as many as a batch has.
        far: Points at all scales, which tell how large the support is.
    """
    if np.mean(np.isfinite(np.asarray(log_density(far)))) < _MOSTLY_OUTSIDE:
        inner = inner_points(density, log_density, points[:_TRIES])
        for begin in range(0, len(inner), len(points)):
            yield np.resize(inner[begin : begin + len(points)], points.shape)


def inner_points(
    density: Density, log_density: LogDensity, starts: Float[np.ndarray, "b d"]
) -> Float[np.ndarray, "m d"]:
    """For each condition a point in the support that fulfils it, if one is found.

    The first condition is all that the support asks for at once: what is compared
    before the density becomes zero, and that logs and roots are numbers.

    Each condition is met by Newton steps, which end at its border. The way goes on
    beyond it until the density is zero again; its middle is taken.

    Args:
        density: The density.
        log_density: The same, compiled for many points.
        starts: Where to begin; all are tried for each condition.
    """
    target = density.target
    with density.own_context():
        count = eqx.filter_eval_shape(lambda p: _needs(target, p), target.like).size
    found: list[np.ndarray] = []
    for which in range(min(count, _MOST_CONDITIONS)):
        condition = _ConditionTarget(target, jnp.asarray(which, jnp.int32))
        distance = eqx.tree_at(lambda d: d.target, density, condition)
        ends = np.asarray(_met(as_array(starts, density.dtype), distance), np.float64)
        ways = ends + _BEYOND[:, None, None] * (ends - starts)
        values = np.asarray(log_density(ways.reshape(-1, starts.shape[1])))
        is_inside = np.isfinite(values).reshape(ways.shape[:2])
        best = int(np.argmax(is_inside.sum(axis=0)))
        inside = np.flatnonzero(is_inside[:, best])
        if len(inside):
            point = 0.5 * (ways[inside[0], best] + ways[inside[-1], best])
            # Where there is one condition, it is all of them together.
            if not any(np.array_equal(point, known) for known in found):
                found.append(point)
    return np.array(found).reshape(len(found), starts.shape[1])


@functools.partial(rarely_run, effort=0)
def _met(starts: Float[Array, "b d"], distance: Density) -> Float[Array, "b d"]:
    def step(x, _):
        hessian, gradient = hessian_and_gradient(distance, x)
        values, vectors = jnp.linalg.eigh(-hessian)
        values = jnp.abs(values)
        values = jnp.maximum(values, _FLOOR * jnp.max(values))
        move = vectors @ (vectors.T @ gradient / values)
        return jnp.where(jnp.all(jnp.isfinite(move)), x + move, x), None

    return jax.vmap(lambda x: jax.lax.scan(step, x, length=_STEPS)[0])(starts)
