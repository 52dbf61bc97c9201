"""Short Hamiltonian chains from the draws of a posterior: do they stay?"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets._rarely import rarely_run

_PROPOSALS = 4000
_LEAPFROG = 6
_TARGET_ACCEPTANCE = 0.75


class ChainCheck(eqx.Module):
    """Where short chains went.

    Attributes:
        shift: Largest difference between the mean of the chains' ends and that of the
            guide's draws, in standard deviations of the ends.
        spread: Smallest and largest ratio of the guide's standard deviation to that of
            the chains' ends.
        acceptance: Mean acceptance probability of the later transitions.

    Example:
        >>> from softcvi.diagnostics import ChainCheck
        >>> check = ChainCheck(shift=0.05, spread=(0.9, 1.1), acceptance=0.8)
        >>> check.shift < 0.25
        True
    """

    shift: float
    spread: tuple[float, float]
    acceptance: float


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
    draw_key, pick_key, chain_key = jax.random.split(key, 3)
    if sample is None or sample.particles is None:
        sample = posterior.importance(draw_key, _PROPOSALS)
    draws = jax.vmap(target.structure.ravel)(sample.particles)
    weights = np.exp(sample.log_weights)
    pick = jax.random.choice(
        pick_key, len(weights), (chains,), p=jnp.asarray(weights / weights.sum())
    )
    vectors = np.asarray(draws, np.float64)
    # Weights may sit on one draw; the guide's own covariance keeps this positive.
    covariance = np.cov(vectors.T, aweights=weights, ddof=0)
    covariance = covariance.reshape(vectors.shape[1], -1)
    covariance = 0.9 * covariance + 0.1 * np.cov(vectors.T).reshape(covariance.shape)
    factor = jnp.asarray(np.linalg.cholesky(_regular(covariance)), draws.dtype)
    ends, acceptance = _run(chain_key, draws[pick], factor, target, transitions)
    ends = np.asarray(ends, np.float64)
    sd = ends.std(axis=0)
    # Chains that all stay at one draw have no spread: infinitely far from the guide's.
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.abs(ends.mean(axis=0) - vectors.mean(axis=0)) / sd
        ratio = vectors.std(axis=0) / sd
    return ChainCheck(
        shift=float(np.max(shift)),
        spread=(float(np.min(ratio)), float(np.max(ratio))),
        acceptance=float(acceptance),
    )


def _regular(covariance: np.ndarray) -> np.ndarray:
    return covariance + 1e-9 * np.diag(np.diagonal(covariance) + 1e-30)


@rarely_run
def _run(
    key: PRNGKeyArray,
    start: Float[Array, "chains d"],
    factor: Float[Array, "d d"],
    target,
    transitions: int,
):
    """Hamiltonian Monte Carlo in coordinates whitened by ``factor``."""
    origin = jnp.mean(start, axis=0)

    def value(z):
        out = target.log_density(target.structure.unravel(origin + factor @ z))
        return jnp.where(jnp.isfinite(out), out, -jnp.inf)

    gradient = jax.vmap(lambda z: jnp.nan_to_num(jax.grad(value)(z)))
    values = jax.vmap(value)

    def transition(carry, key):
        z, log_p, step = carry
        momentum_key, accept_key, jitter_key = jax.random.split(key, 3)
        momentum = jax.random.normal(momentum_key, z.shape, z.dtype)
        size = step * jax.random.uniform(jitter_key, (), z.dtype, 0.7, 1.0)

        def leap(_, state):
            z, p, force = state
            p = p + 0.5 * size * force
            z = z + size * p
            force = gradient(z)
            return z, p + 0.5 * size * force, force

        new_z, new_momentum, _ = jax.lax.fori_loop(
            0, _LEAPFROG, leap, (z, momentum, gradient(z))
        )
        new_log_p = values(new_z)
        kinetic = 0.5 * jnp.sum(momentum**2 - new_momentum**2, axis=1)
        log_ratio = jnp.nan_to_num(new_log_p - log_p + kinetic, nan=-jnp.inf)
        probability = jnp.exp(jnp.minimum(log_ratio, 0.0))
        accept = jax.random.uniform(accept_key, probability.shape) < probability
        mean = jnp.mean(probability)
        step = step * jnp.exp(0.5 * (mean - _TARGET_ACCEPTANCE))
        z = jnp.where(accept[:, None], new_z, z)
        return (z, jnp.where(accept, new_log_p, log_p), step), mean

    z = jax.scipy.linalg.solve_triangular(factor, (start - origin).T, lower=True).T
    step = jnp.asarray(0.7 * z.shape[1] ** -0.25, z.dtype)
    (z, _, _), acceptance = jax.lax.scan(
        transition, (z, values(z), step), jax.random.split(key, transitions)
    )
    return origin + z @ factor.T, jnp.mean(acceptance[transitions // 2 :])
