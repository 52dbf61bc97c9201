"""Newton paths to the posterior, with the best local normal on the way.

As pathfinder does with L-BFGS, each point of an optimisation path gives a normal
approximation, and the one with the highest ELBO is kept: on posteriors whose density
has no finite maximum the end of the path is useless, its middle is not. Newton's
direction with absolute eigenvalues is blind to the scales of the parameters.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

_MAX_ITERATIONS = 60
_ELBO_DRAWS = 32
_FLOOR = 1e-8


class LocalNormal(eqx.Module):
    """A normal approximation found on a path.

    Attributes:
        mean: Its mean.
        covariance: Its covariance.
        elbo: Estimate of the evidence lower bound it reaches.
        converged: Whether its path ended at a maximum.
    """

    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    elbo: Float[Array, ""]
    converged: Array


class _PathState(eqx.Module):
    x: Float[Array, " d"]
    value: Array
    best: LocalNormal
    iteration: Array
    done: Array


def newton_path(
    log_density: Callable[[Float[Array, " d"]], Array],
    start: Float[Array, " d"],
    key: PRNGKeyArray,
) -> LocalNormal:
    """Climb from one start and return the best local normal on the way."""
    noise = jax.random.normal(key, (_ELBO_DRAWS, start.shape[0]), start.dtype)
    # Antithetic draws cancel the odd terms, the gradient among them.
    noise = jnp.concatenate([noise, -noise])

    def safe(x):
        value = log_density(x)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    def local_normal(x, hessian):
        scale, values, vectors = _scaled_eigen(hessian)
        root = scale[:, None] * vectors / jnp.sqrt(values)
        draws = x + noise @ root.T
        log_p = jax.vmap(safe)(draws)
        log_det = jnp.sum(jnp.log(scale)) - 0.5 * jnp.sum(jnp.log(values))
        half_square = 0.5 * jnp.mean(jnp.sum(noise**2, axis=1))
        elbo = jnp.mean(log_p) + log_det + half_square
        elbo = elbo + 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
        return root @ root.T, jnp.where(jnp.isnan(elbo), -jnp.inf, elbo)

    def body(state):
        gradient = jax.grad(log_density)(state.x)
        hessian = jax.hessian(log_density)(state.x)
        usable = jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(hessian))
        hessian = jnp.where(usable, hessian, -jnp.eye(state.x.shape[0]))
        gradient = jnp.where(usable, gradient, 0.0)
        covariance, elbo = local_normal(state.x, hessian)
        better = usable & (elbo > state.best.elbo)
        best = LocalNormal(
            jnp.where(better, state.x, state.best.mean),
            jnp.where(better, covariance, state.best.covariance),
            jnp.where(better, elbo, state.best.elbo),
            state.best.converged,
        )
        step = covariance @ gradient
        sizes = 2.0 ** -jnp.arange(-1.0, 20.0, 1.0, dtype=state.x.dtype)
        candidates = state.x + sizes[:, None] * step
        values = jax.vmap(safe)(candidates)
        pick = jnp.argmax(values)
        gain = values[pick] - state.value
        improved = gain > 0
        done = ~usable | ~(gain > 1e-6 * (1 + jnp.abs(state.value)))
        decrement = jnp.sqrt(jnp.maximum(gradient @ step, 0.0))
        best = eqx.tree_at(lambda b: b.converged, best, usable & (decrement < 0.05))
        return _PathState(
            x=jnp.where(improved, candidates[pick], state.x),
            value=jnp.where(improved, values[pick], state.value),
            best=best,
            iteration=state.iteration + 1,
            done=done,
        )

    dim = start.shape[0]
    first = LocalNormal(
        start,
        jnp.eye(dim, dtype=start.dtype),
        jnp.asarray(-jnp.inf, start.dtype),
        jnp.asarray(False),
    )
    state = _PathState(start, safe(start), first, jnp.asarray(0), jnp.asarray(False))
    state = jax.lax.while_loop(
        lambda s: ~s.done & (s.iteration < _MAX_ITERATIONS), body, state
    )
    return state.best


def _scaled_eigen(hessian: Float[Array, "d d"]):
    """Eigen-decomposition of minus the Hessian after scaling its diagonal to one."""
    diagonal = jnp.abs(jnp.diagonal(hessian))
    largest = jnp.max(diagonal)
    diagonal = jnp.maximum(diagonal, jnp.maximum(largest, 1.0) * 1e-14)
    scale = 1.0 / jnp.sqrt(diagonal)
    values, vectors = jnp.linalg.eigh(-hessian * jnp.outer(scale, scale))
    values = jnp.abs(values)
    return scale, jnp.maximum(values, _FLOOR * jnp.max(values)), vectors
