"""Weights of draws far out whose log density is a rounding error."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from softcvi._compile import put, rarely_run
from softcvi.posterior._importance import log_mean_weight
from softcvi.targets import AbstractTarget
from softcvi.targets._rounding import are_errors

# Draws with so many times the mean weight of most draws are looked at.
_HEAVY, _MOST = 50.0, 0.99
# Log densities that are evaluated side by side.
_POINTS = 500


def without_errors(
    rng: np.random.Generator,
    target: AbstractTarget,
    particles: PyTree,
    log_p: Float[np.ndarray, " n"],
    log_q: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Log densities of draws, minus infinity where heavy ones are rounding errors.

    One draw in the tail of a guide, where a log density is a small difference of huge
    numbers, may outweigh all others, and more so the more draws there are.

    Args:
        rng: Random generator.
        target: The target.
        particles: The draws, in the fitting space.
        log_p: Their log densities.
        log_q: Log densities of the guide.
    """
    is_cheap = target.has_gradient and target.operations_of_call is None
    if not is_cheap or not target.structure.is_continuous:
        return log_p  # a call of the host may take any time
    heavy = _heavy(log_p - log_q)
    if not len(heavy):
        return log_p
    leaves = [np.asarray(x)[heavy] for x in jax.tree_util.tree_leaves(particles)]
    points = np.concatenate([x.reshape(len(heavy), -1) for x in leaves], axis=1)
    dtype = jnp.result_type(*target.structure.dtypes)

    def log_densities(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        heights = []
        for begin in range(0, len(x), _POINTS):
            some = np.resize(x[begin : begin + _POINTS], (_POINTS, x.shape[1]))
            heights.append(np.asarray(_log_densities(put(some.astype(dtype)), target)))
        return np.concatenate(heights)[: len(x)].astype(np.float64)

    # The heights as they are: another program may round in another way.
    found = rng, log_densities, points, log_p[heavy]
    is_error = are_errors(*found, float(jnp.finfo(dtype).eps))
    log_p = np.array(log_p)
    log_p[heavy[is_error]] = -np.inf
    return log_p


def _heavy(log_ratios: Float[np.ndarray, " n"]) -> np.ndarray:
    """Draws with far more weight than most others."""
    finite = np.where(np.isfinite(log_ratios), log_ratios, -np.inf)
    body = np.sort(finite)[: math.ceil(_MOST * len(finite))]
    return np.flatnonzero(finite > log_mean_weight(body) + math.log(_HEAVY))


@functools.partial(rarely_run, effort=0)
def _log_densities(
    vectors: Float[Array, "n d"], target: AbstractTarget
) -> Float[Array, " n"]:
    """Log densities in model coordinates."""

    def one(vector):
        u = target.structure.unravel(vector)
        _, log_det = target.space.to_model_and_log_det(u)
        return target.log_density(u) - log_det

    return jax.vmap(one)(vectors)
