"""The floor: a bare loop on the gradient of a model, in one compiled program."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

_PARTICLES = 16
_RATE = 0.01
_DRAWS = 4_000


def bare_fit(
    key: PRNGKeyArray,
    model: Callable,
    args: tuple,
    kwargs: Mapping[str, Any],
    steps: int,
) -> Array:
    """Fit a mean-field normal by the ELBO and weigh its draws, with nothing around it.

    NumPyro makes the log density. There is no search for the posterior, no choice of
    a guide, no history and no verdict: a loop, 4,000 draws and their log weights.

    Args:
        key: Random key.
        model: NumPyro model.
        args: Its arguments.
        kwargs: Its keyword arguments.
        steps: Steps.

    Example:
        >>> import numpyro, numpyro.distributions as dist
        >>> def model():
        ...     numpyro.sample("x", dist.Normal(0.0, 1.0))
        >>> bare_fit(jax.random.key(0), model, (), {}, 5).shape
        (4000,)
    """
    from numpyro.infer.util import potential_energy

    init_key, run_key = jax.random.split(key)
    like = jax.eval_shape(lambda: _unconstrained(init_key, model, args, kwargs))
    size = sum(math.prod(leaf.shape) for leaf in like.values())

    def unravel(x):
        found, start = {}, 0
        for name, leaf in like.items():
            end = start + math.prod(leaf.shape)
            found[name], start = x[start:end].reshape(leaf.shape), end
        return found

    def log_ratio(params, noise):
        mean, log_scale = params
        x = mean + jnp.exp(log_scale) * noise
        log_q = -0.5 * jnp.sum(noise**2) - jnp.sum(log_scale)
        return -potential_energy(model, args, dict(kwargs), unravel(x)) - log_q

    def step(i, params):
        noise = jax.random.normal(jax.random.fold_in(run_key, i), (_PARTICLES, size))

        def loss(params):
            return -jnp.mean(jax.vmap(lambda z: log_ratio(params, z))(noise))

        grads = jax.grad(loss)(params)
        return tuple(
            p - _RATE * jnp.tanh(g) for p, g in zip(params, grads, strict=True)
        )

    @jax.jit
    def run(steps):
        params = jnp.zeros(size), jnp.full(size, -1.0)
        params = jax.lax.fori_loop(0, steps, step, params)
        noise = jax.random.normal(run_key, (_DRAWS, size))
        return jax.vmap(lambda z: log_ratio(params, z))(noise)

    return jax.block_until_ready(run(steps))


def _unconstrained(
    key: PRNGKeyArray, model: Callable, args: tuple, kwargs: Mapping[str, Any]
) -> dict[str, Array]:
    """A draw of the prior on the real line."""
    from numpyro import handlers
    from numpyro.distributions import biject_to

    trace = handlers.trace(handlers.seed(model, key)).get_trace(*args, **kwargs)
    return {
        name: biject_to(site["fn"].support).inv(site["value"])
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
