"""Short Hamiltonian chains from the draws of a posterior: do they stay?"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi._compile import rarely_run
from softcvi.diagnostics._evidence import ChainCheck
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import Structure
from softcvi.targets._numpy_random import numpy_generator

_PROPOSALS = 4000
_LEAPFROG = 6
_TARGET_ACCEPTANCE = 0.75


def short_chains(
    key: PRNGKeyArray,
    posterior: Posterior,
    sample: ImportanceSample | None = None,
    *,
    chains: int = 512,
    transitions: int = 30,
) -> ChainCheck:
    """Start many short chains at importance-resampled draws and see where they go.

    A guide in the wrong place can have good importance weights, because it never looks
    elsewhere; chains that follow the gradient of the model walk away from there.

    Args:
        key: Random key.
        posterior: The fitted posterior; its target needs a gradient.
        sample: Weighted draws of it; drawn anew if not given.
        chains: Number of chains.
        transitions: Length of each.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> check = softcvi.diagnostics.short_chains(jax.random.key(0), posterior)
        >>> check.shift < 0.3
        True
    """
    target = posterior.target
    if target is None or not target.has_gradient or target.amortised:
        raise ValueError(
            "posterior: short chains need a target with a gradient and global latents."
        )
    if sample is None or sample.particles is None:
        sample = posterior.importance(key, _PROPOSALS)
    draws = _vectors(sample.particles, target.structure)
    weights = np.exp(sample.log_weights)
    # NumPy where it will do: JAX compiles each operation, which takes longer.
    rng = numpy_generator(key)
    pick = rng.choice(len(weights), chains, p=weights / weights.sum())
    vectors = draws.astype(np.float64)
    # Weights may sit on one draw; the guide's own covariance keeps this positive.
    covariance = np.cov(vectors.T, aweights=weights, ddof=0)
    covariance = covariance.reshape(vectors.shape[1], -1)
    covariance = 0.9 * covariance + 0.1 * np.cov(vectors.T).reshape(covariance.shape)
    factor = np.linalg.cholesky(_regular(covariance)).astype(draws.dtype)
    start = jnp.asarray(draws[pick])
    ends, acceptance = _run(
        key, start, jnp.asarray(factor), target, np.int32(transitions)
    )
    ends = np.asarray(ends, np.float64)
    sd = ends.std(axis=0)
    shares = weights if sample.is_usable else np.ones(len(vectors))
    mean = np.average(vectors, axis=0, weights=shares)
    variance = np.average((vectors - mean) ** 2, axis=0, weights=shares)
    # Chains that all stay at one draw have no spread: infinitely far from the answer's.
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.abs(ends.mean(axis=0) - mean) / sd
        ratio = np.sqrt(variance) / sd
    return ChainCheck(
        shift=float(np.max(shift)),
        spread=(float(np.min(ratio)), float(np.max(ratio))),
        acceptance=float(acceptance),
    )


def _vectors(particles: PyTree, structure: Structure) -> np.ndarray:
    """Stacked particles as the rows of a matrix, in the structure's order."""
    leaves = map(np.asarray, structure.treedef.flatten_up_to(particles))
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _regular(covariance: np.ndarray) -> np.ndarray:
    return covariance + 1e-9 * np.diag(np.diagonal(covariance) + 1e-30)


@rarely_run
def _run(
    key: PRNGKeyArray,
    start: Float[Array, "chains d"],
    factor: Float[Array, "d d"],
    target,
    transitions: Int[Array, ""],
):
    """Hamiltonian Monte Carlo in coordinates whitened by ``factor``."""
    key = jax.random.fold_in(key, 1)  # the key itself may have made the draws
    origin = jnp.mean(start, axis=0)

    def value(z):
        out = target.log_density(target.structure.unravel(origin + factor @ z))
        return jnp.where(jnp.isfinite(out), out, -jnp.inf)

    def value_and_force(z):
        out, force = jax.value_and_grad(value)(z)
        return out, jnp.nan_to_num(force)

    evaluate = jax.vmap(value_and_force)

    def transition(i, carry):
        z, log_p, force, step, accepted = carry
        is_first = i == 0
        momentum_key, accept_key, jitter_key = jax.random.split(
            jax.random.fold_in(key, i), 3
        )
        momentum = jax.random.normal(momentum_key, z.shape, z.dtype)
        size = step * jax.random.uniform(jitter_key, (), z.dtype, 0.7, 1.0)
        # The first transition stays where it is and finds out how high and steep it is
        # there: so the density is compiled once, not twice.
        size = jnp.where(is_first, 0.0, size)

        def leap(_, state):
            z, p, _, force = state
            p = p + 0.5 * size * force
            z = z + size * p
            log_p, force = evaluate(z)
            return z, p + 0.5 * size * force, log_p, force

        new_z, new_momentum, new_log_p, new_force = jax.lax.fori_loop(
            0, _LEAPFROG, leap, (z, momentum, log_p, force)
        )
        kinetic = 0.5 * jnp.sum(momentum**2 - new_momentum**2, axis=1)
        log_ratio = jnp.nan_to_num(new_log_p - log_p + kinetic, nan=-jnp.inf)
        probability = jnp.exp(jnp.minimum(log_ratio, 0.0))
        accept = jax.random.uniform(accept_key, probability.shape) < probability
        mean = jnp.mean(probability)
        tuned = step * jnp.exp(0.5 * (mean - _TARGET_ACCEPTANCE))
        step = jnp.where(is_first, step, tuned)
        z = jnp.where(accept[:, None], new_z, z)
        force = jnp.where(accept[:, None], new_force, force)
        accepted = accepted + jnp.where(i > transitions // 2, mean, 0.0)
        return z, jnp.where(accept, new_log_p, log_p), force, step, accepted

    z = jax.scipy.linalg.solve_triangular(factor, (start - origin).T, lower=True).T
    step = jnp.asarray(0.7 * z.shape[1] ** -0.25, z.dtype)
    unknown = jnp.full(z.shape[:1], -jnp.inf, z.dtype)
    none = jnp.zeros((), z.dtype)
    z, *_, accepted = jax.lax.fori_loop(
        0, transitions + 1, transition, (z, unknown, jnp.zeros_like(z), step, none)
    )
    counted = jnp.maximum(transitions - transitions // 2, 1)
    return origin + z @ factor.T, accepted / counted
