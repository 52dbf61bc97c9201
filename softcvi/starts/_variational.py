"""The normal of independent parameters with the highest bound, found without a mode.

The mode of all parameters of a hierarchy together is far from their mean, or does not
exist: where groups are many, a density has most of its mass where it is not highest.
The lower bound of the evidence counts mass.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from softcvi._compile import rarely_run
from softcvi.starts._base import Moments
from softcvi.starts._double import Density
from softcvi.starts._evaluator import Evaluator
from softcvi.targets._cost import cost_of

_STEPS = (200, 1500)
_PAIRS = 4
_RATE = 0.05
_FIRST_SCALE = 0.1
# Elementary operations: some seconds on two cores.
_BUDGET = 2e10
_DRAWS = 64


class Bound(eqx.Module):
    """How well a normal fits: log densities of its draws over its own.

    Attributes:
        elbo: Their mean.
        variance: Their variance; that of the log density of a normal is half of the
            number of parameters.
    """

    elbo: float
    variance: float


def independent_normal(
    start: Float[np.ndarray, " d"], density: Density
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Means and standard deviations that Adam reaches on the ELBO.

    Args:
        start: Where to begin.
        density: The density.
    """
    per_step = 2 * _PAIRS * 4 * cost_of(density.program())
    steps = int(np.clip(_BUDGET / per_step, *_STEPS))
    found = _ascend(jnp.asarray(start, density.dtype), jnp.asarray(steps), density)
    mean, log_scale = (np.asarray(leaf, np.float64) for leaf in found)
    return mean, np.exp(log_scale)


@functools.partial(rarely_run, effort=1)
def _ascend(
    start: Float[Array, " d"], steps: Array, density: Density
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    import optax  # where it is used, for a quick start

    def gradients(parameters, key):
        mean, log_scale = parameters
        half = jax.random.normal(key, (_PAIRS, start.size), start.dtype)
        noise = jnp.concatenate([half, -half])
        slopes = jax.vmap(density.gradient)(mean + jnp.exp(log_scale) * noise)
        slopes = jnp.where(jnp.all(jnp.isfinite(slopes), 1, keepdims=True), slopes, 0.0)
        moved = jnp.mean(slopes * noise, axis=0) * jnp.exp(log_scale) + 1.0
        return -jnp.mean(slopes, axis=0), -moved

    adam = optax.scale_by_adam(b1=0.9, b2=0.99)

    def body(i, carry):
        parameters, state = carry
        updates, state = adam.update(
            gradients(parameters, jax.random.fold_in(jax.random.key(0), i)), state
        )
        # Half of the steps at the full rate, then down to zero.
        rate = _RATE * jnp.minimum(1.0, 2.0 * (1.0 - i / steps))
        parameters = jax.tree_util.tree_map(
            lambda p, u: p - rate.astype(p.dtype) * u, parameters, updates
        )
        return parameters, state

    first = (start, jnp.full_like(start, np.log(_FIRST_SCALE)))
    return jax.lax.fori_loop(0, steps, body, (first, adam.init(first)))[0]


def bound_of(mode: Moments, log_density: Evaluator) -> Bound:
    """How well the normal with these moments fits.

    Args:
        mode: Moments.
        log_density: Evaluates many points.
    """
    rng = np.random.default_rng(1)
    size = mode.mean.size
    if mode.covariance is not None:
        try:
            factor = np.linalg.cholesky(mode.covariance)
        except np.linalg.LinAlgError:  # scales too different for the digits there are
            return Bound(-np.inf, np.inf)
        noise = rng.normal(size=(_DRAWS, size))
        away, squares = noise @ factor.T, np.sum(noise**2, axis=1)
        log_det = np.sum(np.log(np.diagonal(factor)))
    else:
        assert mode.scale is not None
        assert mode.factor is not None
        narrow = mode.factor / mode.scale[:, None]
        scaled = rng.normal(size=(_DRAWS, size))
        scaled += rng.normal(size=(_DRAWS, narrow.shape[1])) @ narrow.T
        # By Woodbury: the inverse of the identity plus few directions.
        within = np.linalg.cholesky(np.eye(narrow.shape[1]) + narrow.T @ narrow)
        inside = np.linalg.solve(within, narrow.T @ scaled.T)
        squares = np.sum(scaled**2, axis=1) - np.sum(inside**2, axis=0)
        log_det = np.sum(np.log(mode.scale)) + np.sum(np.log(np.diagonal(within)))
        away = scaled * mode.scale
    log_q = -0.5 * squares - log_det - 0.5 * size * np.log(2 * np.pi)
    ratios = log_density(mode.mean + away) - log_q
    if not np.all(np.isfinite(ratios)):
        return Bound(-np.inf, np.inf)
    return Bound(float(np.mean(ratios)), float(np.var(ratios)))
