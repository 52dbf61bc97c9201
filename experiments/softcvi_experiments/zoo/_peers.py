"""Other people's methods on a zoo model, as their users would call them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from softcvi_experiments.nuts import sample_model
from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._outcome import Outcome, pareto_khat
from softcvi_experiments.zoo._unconstrained import Unconstrained, unconstrain

NUM_DRAWS = 20_000
SVI_STEPS = 10_000
PATHS = 8


def _in_model_coordinates(space: Unconstrained, log_q: Callable) -> Callable:
    def one(draw):
        flat, log_det = space.invert(draw)
        return log_q(flat) - log_det

    def batch(draws):
        return jax.jit(jax.vmap(one))({k: jnp.asarray(v) for k, v in draws.items()})

    return batch


def _svi(guide_class: type, model: ZooModel, seed: int) -> Outcome:
    import optax
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.optim import optax_to_numpyro

    run_key, draw_key, space_key = jax.random.split(jax.random.key(seed), 3)
    guide = guide_class(model.model)
    rate = optax.cosine_decay_schedule(1e-2, SVI_STEPS)
    svi = SVI(model.model, guide, optax_to_numpyro(optax.adam(rate)), Trace_ELBO())
    result = svi.run(
        run_key, SVI_STEPS, *model.args, progress_bar=False, **model.kwargs
    )
    draws = guide.sample_posterior(draw_key, result.params, sample_shape=(NUM_DRAWS,))

    def log_q(flat):
        mean, factor = _normal_of(guide, result.params)
        z = jax.scipy.linalg.solve_triangular(factor, flat - mean, lower=True)
        log_det = jnp.log(jnp.diagonal(factor)).sum()
        return jax.scipy.stats.norm.logpdf(z).sum() - log_det

    space = unconstrain(model, space_key)

    def khat():
        mean, factor = _normal_of(guide, result.params)
        noise = jax.random.normal(draw_key, (NUM_DRAWS, len(mean)))
        flat = mean + noise @ factor.T
        gap = jax.jit(jax.vmap(lambda u: space.log_density(u) - log_q(u)))(flat)
        return pareto_khat(np.asarray(gap))

    return Outcome(draws, _in_model_coordinates(space, log_q), khat)


def _normal_of(guide, params) -> tuple[jax.Array, jax.Array]:
    """Mean and Cholesky factor of a normal autoguide on the unconstrained space."""
    from numpyro.infer.autoguide import AutoContinuous

    if isinstance(guide, AutoContinuous):
        posterior = guide.get_posterior(params)
        return posterior.mean, posterior.scale_tril

    def flat(kind):
        end = f"_{guide.prefix}_{kind}"
        named = {k.removesuffix(end): v for k, v in params.items() if k.endswith(end)}
        return ravel_pytree(named)[0]

    return flat("loc"), jnp.diag(flat("scale"))


def auto_normal(model: ZooModel, seed: int) -> Outcome:
    """NumPyro SVI with AutoNormal, Adam at 1e-2 with cosine decay."""
    from numpyro.infer.autoguide import AutoNormal

    return _svi(AutoNormal, model, seed)


def auto_multivariate_normal(model: ZooModel, seed: int) -> Outcome:
    """NumPyro SVI with AutoMultivariateNormal, Adam at 1e-2 with cosine decay."""
    from numpyro.infer.autoguide import AutoMultivariateNormal

    return _svi(AutoMultivariateNormal, model, seed)


def pathfinder(model: ZooModel, seed: int) -> Outcome:
    """BlackJAX multi-path pathfinder from eight starts, importance-resampled."""
    from blackjax.vi import multipathfinder

    space_key, starts_key, run_key, draw_key = jax.random.split(jax.random.key(seed), 4)
    space = unconstrain(model, space_key)
    shape = (PATHS, len(space.start))
    starts = jax.random.uniform(starts_key, shape, minval=-2.0, maxval=2.0)
    starts = starts.at[0].set(space.start)
    algorithm = multipathfinder.as_top_level_api(space.log_density)
    state, _ = jax.jit(lambda k, x: algorithm.init(k, x))(run_key, starts)
    _, khat = multipathfinder.psis_weights(state)
    flat = algorithm.sample(draw_key, state, NUM_DRAWS)

    def log_q(x):
        paths = state.path_states
        covariance = jax.vmap(lambda a, b, g: jnp.diag(a) + b @ g @ b.T)(
            paths.alpha, paths.beta, paths.gamma
        )
        shift = jnp.einsum("pij,pj->pi", covariance, paths.grad_position)
        normal = jax.scipy.stats.multivariate_normal.logpdf
        by_path = jax.vmap(normal, (None, 0, 0))(x, paths.position + shift, covariance)
        return jax.nn.logsumexp(by_path) - jnp.log(PATHS)

    return Outcome(
        draws=jax.jit(jax.vmap(space.constrain))(flat),
        log_prob=_in_model_coordinates(space, log_q),
        khat=lambda: float(khat),
        trusted=bool(khat < 0.7),
        verdict=f"k-hat {float(khat):.2f}",
    )


def nuts(model: ZooModel, seed: int) -> Outcome:
    """NumPyro NUTS, four vectorised chains of 1,000 after 1,000 of warm-up."""
    key = jax.random.key(seed)
    run = sample_model(key, model.model, model.args, model.kwargs)
    return Outcome(run.draws, trusted=run.trusted, verdict=str(run), details=run.checks)


def nuts_parallel(model: ZooModel, seed: int) -> Outcome:
    """The same with one device per chain."""
    import numpyro

    # Before JAX looks for devices; each method has a process of its own.
    numpyro.set_host_device_count(4)
    key = jax.random.key(seed)
    run = sample_model(key, model.model, model.args, model.kwargs, parallel=True)
    return Outcome(run.draws, trusted=run.trusted, verdict=str(run), details=run.checks)
