"""Posterior predictive draws: the model run on posterior draws."""

from typing import Any

import jax
from jaxtyping import Array, PRNGKeyArray

from softcvi.adapters._model_target import AbstractModelTarget, over_draws
from softcvi.adapters.numpyro._call import ModelCall
from softcvi.adapters.numpyro._target import NumPyroTarget, predict
from softcvi.posterior import Posterior


def posterior_predictive(
    key: PRNGKeyArray,
    posterior: Posterior,
    *args: Any,
    n: int = 1000,
    draws: dict[str, Array] | None = None,
    **kwargs: Any,
) -> dict[str, Array]:
    """Replicates of the observed sites, one for each posterior draw.

    Args:
        key: Random key.
        posterior: A posterior fitted to a NumPyro or PyMC model.
        *args: Other arguments for the model, for example new predictors; by default
            those of the fit.
        n: Number of draws.
        draws: Draws to use instead, named arrays with a leading axis, for example from
            ``posterior.resample``.
        **kwargs: Other keyword arguments for the model.

    Returns:
        Named arrays with a leading axis of draws.

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> import softcvi
        >>> from softcvi.adapters import from_numpyro, posterior_predictive
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> target = from_numpyro(model, jnp.array([1.0, 2.0, 3.0]))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> posterior_predictive(jax.random.key(0), posterior, n=10)["y"].shape
        (10, 3)
    """
    target = None if posterior.target is None else posterior.target.unwrapped
    if not isinstance(target, AbstractModelTarget):
        raise TypeError(
            "posterior: its target knows no model to draw data from. Use a target from "
            "softcvi.adapters.from_numpyro, and softcvi.load(path, target=target)."
        )
    draw_key, data_key = jax.random.split(key)
    draws = posterior.sample(draw_key, n) if draws is None else draws
    if not (args or kwargs):
        return target.predict_draws(data_key, draws)
    if not isinstance(target, NumPyroTarget):
        raise TypeError(
            "args: other arguments are for NumPyro models only. For a PyMC model use "
            "pm.set_data, and pm.sample_posterior_predictive on the draws."
        )
    keys = jax.random.split(data_key, jax.tree_util.tree_leaves(draws)[0].shape[0])
    call = ModelCall(target.call.model, args, kwargs)
    return over_draws(lambda k, x: predict(target, call, k, x), keys, draws)
