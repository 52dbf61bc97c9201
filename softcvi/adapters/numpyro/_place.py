"""NumPyro guides at given moments: by their parameters, or by training on draws."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi.guides import AbstractGuide
from softcvi.targets import Structure

_DRAWS = 512
_STEPS = 1500
_RATE = 0.02


def moment_params(
    prefix: str,
    params: dict[str, Any],
    structure: Structure,
    order: tuple[str, ...],
    mean: Float[Array, " d"],
    covariance: Float[Array, "d d"],
) -> dict[str, Array] | None:
    """Parameters with which one of NumPyro's normal AutoGuides has given moments.

    Args:
        prefix: The AutoGuide's own.
        params: The parameters that it has, by name.
        structure: One particle in the unconstrained space.
        order: Names of its sites in the order in which the guide joins them.
        mean: Mean in that space.
        covariance: Covariance in that space.

    Returns:
        Parameters as NumPyro sees them; None for other guides.
    """
    sds = jnp.sqrt(jnp.diag(covariance))
    centres, spreads = structure.unravel(mean), structure.unravel(sds)
    numbers = structure.unravel(jnp.arange(structure.size))
    places = jnp.concatenate([jnp.ravel(numbers[name]) for name in order])
    places = places.astype(int)
    mean, sds = mean[places], sds[places]
    covariance = covariance[places][:, places]
    names = set(params)
    joint = {f"{prefix}_loc"}
    if names == joint | {f"{prefix}_scale_tril"}:
        factor = jnp.linalg.cholesky(covariance)
        return {f"{prefix}_loc": mean, f"{prefix}_scale_tril": factor}
    if names == joint | {f"{prefix}_scale"}:
        return {f"{prefix}_loc": mean, f"{prefix}_scale": sds}
    if names == joint | {f"{prefix}_scale", f"{prefix}_cov_factor"}:
        rank = params[f"{prefix}_cov_factor"].shape[-1]
        factor, scale = _low_rank(covariance / jnp.outer(sds, sds), rank)
        # NumPyro multiplies the factor by the scale.
        return {
            f"{prefix}_loc": mean,
            f"{prefix}_scale": scale * sds,
            f"{prefix}_cov_factor": factor / scale[:, None],
        }
    by_site = {}
    for name in structure.like:
        by_site[f"{name}_{prefix}_loc"] = centres[name]
        by_site[f"{name}_{prefix}_scale"] = spreads[name]
    return by_site if names == set(by_site) else None


def _low_rank(correlation: Array, rank: int) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(correlation)
    kept = jnp.maximum(values[-rank:] - jnp.mean(values[:-rank]), 0.0)
    factor = vectors[:, -rank:] * jnp.sqrt(kept)
    rest = jnp.diag(correlation) - jnp.sum(factor**2, axis=1)
    return factor, jnp.sqrt(jnp.maximum(rest, 1e-3))


def trained_on_normal(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    mean: Float[np.ndarray, " d"],
    covariance: Float[np.ndarray, "d d"],
) -> AbstractGuide:
    """A guide of any kind, trained by maximum likelihood on draws of a normal.

    Args:
        key: Random key.
        guide: The guide.
        mean: Mean of the normal in the fitting space.
        covariance: Its covariance.
    """
    params, static = eqx.partition(guide, eqx.is_inexact_array)
    factor = np.linalg.cholesky(covariance)
    noise = jax.random.normal(key, (_DRAWS, mean.size))
    vectors = jnp.asarray(mean, float) + noise @ jnp.asarray(factor.T, float)
    draws = jax.vmap(guide.structure.unravel)(vectors)
    import optax  # where it is used, for a quick start

    rate = optax.cosine_decay_schedule(_RATE, _STEPS)
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(rate))

    def loss(params: PyTree) -> Array:
        log_q = jax.vmap(eqx.combine(params, static).log_prob)(draws)
        return -jnp.mean(log_q)

    @jax.jit
    def run(params):
        def step(carry, _):
            params, state = carry
            grads = jax.grad(loss)(params)
            updates, state = optimizer.update(grads, state, params)
            return (optax.apply_updates(params, updates), state), None

        start = (params, optimizer.init(params))
        return jax.lax.scan(step, start, None, length=_STEPS)[0][0]

    trained = run(params)
    leaves = jax.tree_util.tree_leaves(trained)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in leaves):
        return guide
    return eqx.combine(trained, static)
