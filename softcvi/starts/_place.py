"""Moving a given guide to what a start has found."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.guides import AbstractGuide
from softcvi.starts._explore import ascend_once
from softcvi.targets import AbstractTarget

STARTUP_SHARE = 0.1


def place(
    guide: AbstractGuide, mean: PyTree, covariance: PyTree
) -> AbstractGuide | None:
    """Move a guide to given moments, if its family knows how."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    mean, covariance = jnp.asarray(mean, dtype), jnp.asarray(covariance, dtype)
    return guide.matched(mean, covariance)


def place_by_newton(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget, *, paths: int
) -> AbstractGuide:
    """Traceable start for many fits at once: the best of a few Newton paths."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    ascend = functools.partial(ascend_once, target=target, dtype=dtype)
    normals = jax.vmap(ascend)(jax.random.split(key, paths))
    best = jnp.argmax(normals.elbo)
    placed = place(guide, normals.mean[best], normals.covariance[best])
    assert placed is not None  # the caller has asked can_be_matched
    return placed
