"""Newton paths to the posterior, with the best local normal on the way.

As pathfinder does with L-BFGS, each point of an optimisation path gives a normal
approximation, and the one with the highest ELBO is kept: on posteriors whose density
has no finite maximum the end of the path is useless, its middle is not. Newton's
direction with absolute eigenvalues is blind to the scales of the parameters.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from softcvi.starts._double import Density

_MAX_ITERATIONS = 150
# Most iterations of a path: a multiple of those of the median path, plus a constant.
PATIENCE = (3, 16)
_ELBO_PAIRS = 16
_FLOOR = 1e-8
# Shares of Newton's step that are tried. The first is the point itself. Large ones are
# for exponential walls, on which Newton's step is the same however high they are.
_SIZES = (0.0, 128.0, 32.0, 8.0, *(2.0**-i for i in range(-2, 9)), 2e-3, 5e-4, 6e-5)
# Beyond this gain, in nats, a direction's own curvature says nothing of how far to go:
# in an exponential tail it vanishes, and one such direction would spoil the whole step.
TRUSTED_GAIN = 32.0
# Shares of the step in which every direction is limited by that gain.
_LIMITED_SIZES = (4.0, 1.0, 0.25)
# A shorter step is taken if it has this share of the largest gain.
ENOUGH = 0.99
# Draws outside the support count as this many nats below the point itself: a normal
# always has some where the support is bounded.
OUTSIDE = 100.0


class LocalNormal(eqx.Module):
    """A normal approximation found on a path.

    Attributes:
        mean: Its mean.
        covariance: Its covariance.
        elbo: Estimate of the evidence lower bound it reaches.
        converged: Whether its path ended at a maximum.
    """

    mean: Float[Array, "*b d"]
    covariance: Float[Array, "*b d d"]
    elbo: Float[Array, "*b"]
    converged: Array


class _PathState(eqx.Module):
    x: Float[Array, " d"]
    best: LocalNormal
    done: Array


def hessian_and_gradient(
    density: Density, x: Float[Array, " d"]
) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
    """Both, by products with the unit vectors."""
    eye = jnp.eye(x.size, dtype=x.dtype)
    gradients, hessian = jax.vmap(lambda v: density.gradient_and_product(x, v))(eye)
    return hessian, gradients[0]


def newton_path(density: Density, start: Float[Array, " d"]) -> LocalNormal:
    """Ascend from one start and return the best local normal on the way."""
    found = newton_paths(density, start[None])
    return jax.tree_util.tree_map(lambda leaf: leaf[0], found)


def newton_paths(density: Density, starts: Float[Array, "b d"]) -> LocalNormal:
    """Ascend from each start and return the best local normal on each path.

    All paths take as long as the longest, so those are cut that take much longer than
    half of the others.

    Args:
        density: The density.
        starts: Where to begin.
    """

    def is_going(carry):
        states, iteration, half = carry
        limit = jnp.where(half > 0, PATIENCE[0] * half + PATIENCE[1], iteration + 1)
        return (
            ~jnp.all(states.done) & (iteration < _MAX_ITERATIONS) & (iteration < limit)
        )

    def body(carry):
        states, iteration, half = carry
        new = jax.vmap(lambda state: _next_state(density, state))(states)
        states = jax.tree_util.tree_map(
            lambda a, b: jnp.where(
                states.done.reshape((-1,) + (1,) * (a.ndim - 1)), a, b
            ),
            states,
            new,
        )
        is_half = (half == 0) & (jnp.mean(states.done) >= 0.5)
        return states, iteration + 1, jnp.where(is_half, iteration + 1, half)

    states = jax.vmap(_first_state)(starts)
    zero = jnp.asarray(0)
    return jax.lax.while_loop(is_going, body, (states, zero, zero))[0].best


def _first_state(start: Float[Array, " d"]) -> _PathState:
    first = LocalNormal(
        start,
        jnp.eye(start.size, dtype=start.dtype),
        jnp.asarray(-jnp.inf, start.dtype),
        jnp.asarray(False),
    )
    return _PathState(start, first, jnp.asarray(False))


def _next_state(density: Density, state: _PathState) -> _PathState:
    """One step of a path, and the normal at the point it starts from."""
    dim, dtype = state.x.size, state.x.dtype
    # Every normal is judged by the same draws. Antithetic ones cancel the odd terms,
    # the gradient among them.
    noise = np.random.default_rng(0).normal(size=(_ELBO_PAIRS, dim))
    noise = np.concatenate([noise, -noise])
    entropy = 0.5 * np.mean(np.sum(noise**2, axis=1)) + 0.5 * dim * np.log(2 * np.pi)
    noise, sizes, limited_sizes = (
        jnp.asarray(array, dtype) for array in (noise, _SIZES, _LIMITED_SIZES)
    )

    def safe(x):
        value = density.value(x)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    hessian, gradient = hessian_and_gradient(density, state.x)
    usable = jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(hessian))
    hessian = jnp.where(usable, hessian, -jnp.eye(dim, dtype=hessian.dtype))
    gradient = jnp.where(usable, gradient, 0.0)
    scale, values, vectors = scaled_eigen(hessian)
    root = scale[:, None] * vectors / jnp.sqrt(values)
    covariance = root @ root.T
    step = covariance @ gradient
    limited = _limited_step(gradient, scale, values, vectors)
    candidates = state.x + jnp.concatenate(
        [sizes[:, None] * step, jnp.outer(limited_sizes, limited)]
    )
    sizes = jnp.concatenate([sizes, limited_sizes])
    draws = state.x + noise @ root.T
    # Each use of the density is compiled separately, so there is only one.
    log_p = jax.vmap(safe)(jnp.concatenate([candidates, draws]))
    log_p, log_p_draws = log_p[: sizes.size], log_p[sizes.size :]
    log_det = jnp.sum(jnp.log(scale)) - 0.5 * jnp.sum(jnp.log(values))
    log_p_draws = jnp.maximum(log_p_draws, log_p[0] - OUTSIDE)
    elbo = jnp.mean(log_p_draws) + log_det + entropy
    elbo = jnp.where(jnp.isnan(elbo), -jnp.inf, elbo)
    better = usable & (elbo > state.best.elbo)
    best = LocalNormal(
        jnp.where(better, state.x, state.best.mean),
        jnp.where(better, covariance, state.best.covariance),
        jnp.where(better, elbo, state.best.elbo),
        state.best.converged,
    )
    gains = jnp.where(log_p == -jnp.inf, -jnp.inf, log_p - log_p[0])
    # Of steps that gain the same the shortest: a longer one may overshoot where
    # another direction hides what it costs.
    is_enough = gains >= ENOUGH * jnp.max(gains)
    pick = jnp.argmin(jnp.where(is_enough, sizes, jnp.inf))
    gain = gains[pick]
    done = ~usable | ~(gain > 1e-6 * (1 + jnp.abs(log_p[0])))
    decrement = jnp.sqrt(jnp.maximum(gradient @ step, 0.0))
    best = eqx.tree_at(lambda b: b.converged, best, usable & (decrement < 0.05))
    x = jnp.where(gain > 0, candidates[pick], state.x)
    return _PathState(x=x, best=best, done=done)


def _limited_step(
    gradient: Float[Array, " d"],
    scale: Float[Array, " d"],
    values: Float[Array, " d"],
    vectors: Float[Array, "d d"],
) -> Float[Array, " d"]:
    """Newton's step, with no direction followed beyond the gain that is trusted."""
    slopes = vectors.T @ (scale * gradient)
    tiny = jnp.finfo(slopes.dtype).tiny
    limit = TRUSTED_GAIN / jnp.maximum(jnp.abs(slopes), tiny)
    return scale * (vectors @ jnp.clip(slopes / values, -limit, limit))


def scaled_eigen(hessian: Float[Array, "d d"]):
    """Eigen-decomposition of minus the Hessian after scaling its diagonal to one."""
    diagonal = jnp.abs(jnp.diagonal(hessian))
    largest = jnp.max(diagonal)
    diagonal = jnp.maximum(diagonal, jnp.maximum(largest, 1.0) * 1e-14)
    scale = 1.0 / jnp.sqrt(diagonal)
    values, vectors = jnp.linalg.eigh(-hessian * jnp.outer(scale, scale))
    values = jnp.abs(values)
    return scale, jnp.maximum(values, _FLOOR * jnp.max(values)), vectors
