"""Checks of what a user hands to ``fit``: errors that name the argument."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Key, PRNGKeyArray

from softcvi._compile import host_key
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective
from softcvi.targets import AbstractTarget, Structure

_PROBES = 64
# Steps are counted in 32 bits.
_MOST = 2**31


def checked_key(key: Any) -> PRNGKeyArray:
    """A typed key, from ``jax.random.key`` or the older ``PRNGKey``."""
    if isinstance(key, int):
        raise TypeError(
            f"key: expected a JAX random key; got the integer {key}. Use "
            f"jax.random.key({key})."
        )
    if not isinstance(key, jax.Array):
        raise TypeError(
            f"key: expected a JAX random key such as jax.random.key(0); got "
            f"{type(key).__name__}."
        )
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape != ():
            raise ValueError(
                f"key: expected one key; got an array of shape {key.shape}. For many "
                "runs use softcvi.fit_many."
            )
        return key
    if key.dtype == jnp.uint32 and key.shape == (2,):
        return jax.random.wrap_key_data(key)
    raise TypeError(
        f"key: expected a JAX random key such as jax.random.key(0); got an array of "
        f"dtype {key.dtype} and shape {key.shape}."
    )


def checked_keys(keys: Any) -> Key[Array, " runs"]:
    """A vector of typed keys, one per run."""
    is_array = isinstance(keys, jax.Array)
    if is_array and keys.dtype == jnp.uint32 and keys.ndim == 2:
        keys = jax.random.wrap_key_data(keys)
    if not (
        is_array and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) and keys.ndim == 1
    ):
        raise TypeError(
            "keys: expected an array of keys, e.g. "
            "jax.random.split(jax.random.key(0), 10)."
        )
    if not len(keys):
        raise ValueError("keys: there is none; give a key for each run.")
    return keys


def check_count(name: str, value: Any) -> None:
    """At least one, and an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected an integer; got {value!r}.")
    if value < 1:
        raise ValueError(f"{name}: must be at least 1; got {value}.")
    if value >= _MOST:
        raise ValueError(f"{name}: must be below 2**31.")


def check_target(target: Any, objective: AbstractObjective) -> None:
    """The log density must be a float scalar, differentiable if that is needed."""
    if not isinstance(target, AbstractTarget):
        raise TypeError(
            "target: expected a softcvi target; got "
            f"{type(target).__name__}. Wrap a log density with softcvi.DensityTarget("
            "log_prob, like=...), a model with softcvi.adapters.from_numpyro or "
            "from_pymc."
        )
    _check_parameters(target.structure)
    if objective.needs_gradient and not target.has_gradient:
        raise ValueError(
            f"objective: {type(objective).__name__} differentiates the model, and this "
            "target has no gradient. Use softcvi.SoftCVI()."
        )
    data = eqx.filter_eval_shape(target.draw_data, host_key(0))
    if target.amortised:
        data = jax.tree_util.tree_map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), data
        )
    out = eqx.filter_eval_shape(target.log_density, target.like, data)
    if out is None:
        raise TypeError(
            "target: log_density returned None. Check that every branch of the "
            "function returns the log density."
        )
    shape, dtype = jnp.shape(out), jnp.result_type(out)
    if shape != ():
        raise ValueError(
            f"target: the log density must be a scalar; it has shape {shape}. Sum over "
            "data and parameters, e.g. with jnp.sum."
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"target: the log density must be a float; it is {dtype}. Return a float, "
            "e.g. with .astype(float)."
        )


def _check_parameters(structure: Structure) -> None:
    """There must be some, in a precision that labels can be computed in."""
    if structure.size == 0:
        raise ValueError(
            "target: has no parameters: every array of a particle is empty. Give like= "
            "with at least one number, e.g. like={'theta': jnp.zeros(3)}."
        )
    for name, dtype in zip(structure.names, structure.dtypes, strict=True):
        is_small = jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4
        if is_small:
            raise TypeError(
                f"target: '{name}' is {dtype}, which is too coarse for log densities. "
                "Give like= in float32 or float64."
            )


def check_guide(guide: Any, target: AbstractTarget) -> None:
    """Structure and shapes must agree with the target's."""
    if not isinstance(guide, AbstractGuide):
        raise TypeError(
            f"guide: expected a guide of softcvi.guides; got {type(guide).__name__}. "
            "Wrap a FlowJAX distribution with softcvi.guides.VectorGuide."
        )
    difference = target.structure.difference(guide.structure)
    if difference:
        raise ValueError(
            f"guide: does not fit the target: {difference}. The target's particle is "
            f"{target.structure}; build the guide from it, e.g. "
            "softcvi.guides.mean_field(target)."
        )


def check_support(key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget):
    """Where the target has mass, the guide must have some too."""
    if guide.covers_reals or target.amortised:
        return
    log_p, log_q = map(np.asarray, _at_initial(key, guide, target))
    missed = np.isfinite(log_p) & (log_q == -np.inf)
    if missed.any():
        share = missed.sum() / np.isfinite(log_p).sum()
        raise ValueError(
            f"guide: lacks the target's support: at {share:.0%} of {_PROBES} starting "
            "points the target is finite and the guide's density is zero. Use a guide "
            "on the same domain, or a space (softcvi.targets.UnconstrainedSpace) that "
            "maps one to the other."
        )


@eqx.filter_jit
def _at_initial(key, guide, target):
    guide = paramax.unwrap(guide)

    def one(key):
        particle = target.initial_particle(key)
        data = target.draw_data(key)
        return target.log_density(particle, data), guide.log_prob(particle)

    return jax.vmap(one)(jax.random.split(key, _PROBES))


def explain_nothing_usable(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget
) -> str:
    """Why not a single step at the start could be used, in words."""
    parameters = eqx.filter(guide, eqx.is_inexact_array)
    leaves = jax.tree_util.tree_leaves(parameters)
    if not all(np.isfinite(leaf).all() for leaf in map(np.asarray, leaves)):
        return (
            "target: the posterior seems to be wider than its floating-point numbers "
            f"reach (to {np.finfo(leaves[0].dtype).max:.1g}): the starting guide is "
            "infinite. It may be improper: check its priors; otherwise measure "
            "parameters in larger units."
        )
    if not target.amortised:
        log_p = np.asarray(_at_guide(key, guide, target))
        if np.isnan(log_p).all():
            return (
                "target: the log density is NaN at every draw of the starting guide. "
                "Check the data for NaN, and the model for logs or square roots of "
                "negative numbers; a "
                "space such as softcvi.targets.UnconstrainedSpace keeps parameters in "
                "their domain."
            )
        if (log_p == -np.inf).all():
            return (
                "target: the log density is -inf at every draw of the starting guide: "
                "the guide lies outside the target's support. Start it inside, or use "
                "a space that maps the support to the whole line."
            )
    return (
        "target: no step at the start gave a finite gradient. Check the log density, "
        "and its gradient if the objective is the ELBO, at a few draws of the guide."
    )


@eqx.filter_jit
def _at_guide(key, guide, target):
    guide = paramax.unwrap(guide)
    return jax.vmap(
        lambda key: target.log_density(guide.sample(key), target.draw_data(key))
    )(jax.random.split(key, _PROBES))
