"""Moving a given guide to what a start has found."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.guides import (
    AbstractGuide,
    FullRankNormal,
    FullRankStudentT,
    Whitened,
)
from softcvi.starts._explore import climb_once
from softcvi.targets import AbstractTarget

STARTUP_SHARE = 0.1
_TUNED_SHARE = 0.2


def place(
    guide: AbstractGuide, mean: PyTree, covariance: PyTree
) -> AbstractGuide | None:
    """Move a guide to given moments, if its family knows how."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    mean, covariance = jnp.asarray(mean, dtype), jnp.asarray(covariance, dtype)
    return guide.matched(mean, covariance)


def can_be_placed(guide: AbstractGuide) -> bool:
    """Whether ``place`` can move guides of this family."""
    size = guide.structure.size
    return (
        guide.structure.is_continuous
        and place(guide, np.zeros(size), np.eye(size)) is not None
    )


def is_flow(guide: AbstractGuide) -> bool:
    """Whether a guide is a flow behind an affine map."""
    distribution = getattr(guide, "distribution", None)
    return isinstance(distribution, Whitened) and not isinstance(
        distribution.base, FullRankNormal | FullRankStudentT
    )


def starting_rate(guide: AbstractGuide, placed: bool) -> float:
    """Peak learning rate: smaller for a normal that already lies on the posterior.

    What is left to do there is fine-tuning, and noise grows with the rate. A flow is
    only put behind an affine map, and has everything still to learn.
    """
    is_tuned = placed and not is_flow(guide)
    return guide.suggested_rate * (_TUNED_SHARE if is_tuned else 1.0)


def place_by_newton(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget, *, paths: int
) -> AbstractGuide:
    """Traceable start for many fits at once: the best of a few Newton paths."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    climb = functools.partial(climb_once, target=target, dtype=dtype)
    normals = jax.vmap(climb)(jax.random.split(key, paths))
    best = jnp.argmax(normals.elbo)
    placed = place(guide, normals.mean[best], normals.covariance[best])
    assert placed is not None  # the caller has asked can_be_placed
    return placed
