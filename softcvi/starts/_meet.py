"""Points inside a support that the program of the log density describes."""

import functools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Scalar

from softcvi._compile import as_array, rarely_run
from softcvi.starts._branches import Evaluation
from softcvi.starts._double import Density
from softcvi.starts._importance import LogDensity
from softcvi.starts._newton import hessian_and_gradient
from softcvi.targets import AbstractTarget
from softcvi.targets._base import AbstractWrapper

_STEPS = 40
_FLOOR = 1e-6
# Share of far points with a density below which the support is looked for.
_MOSTLY_OUTSIDE = 0.5
# Conditions that are met one by one, and starts for each.
_MOST, _TRIES = 64, 4
# How far beyond the border to look, as shares of the way to it.
_BEYOND = np.concatenate([[0.0], 2.0 ** np.arange(-24, 1)])


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
    return jnp.concatenate(found) if found else jnp.zeros(0)


def inner_starts(
    density: Density,
    log_density: LogDensity,
    points: Float[np.ndarray, "b d"],
    far: Float[np.ndarray, "n d"],
) -> Iterator[Float[np.ndarray, "b d"]]:
    """Starts inside of a support that most of the space is outside of, in batches.

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
    """A point inside of each condition that leads to the support, where one does.

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
    found = []
    for which in range(min(count, _MOST)):
        condition = _ConditionTarget(target, jnp.asarray(which, jnp.int32))
        distance = eqx.tree_at(lambda d: d.target, density, condition)
        ends = np.asarray(_met(as_array(starts, density.dtype), distance), np.float64)
        ways = ends + _BEYOND[:, None, None] * (ends - starts)
        values = np.asarray(log_density(ways.reshape(-1, starts.shape[1])))
        is_inside = np.isfinite(values).reshape(ways.shape[:2])
        best = int(np.argmax(is_inside.sum(axis=0)))
        inside = np.flatnonzero(is_inside[:, best])
        if len(inside):
            found.append(0.5 * (ways[inside[0], best] + ways[inside[-1], best]))
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
