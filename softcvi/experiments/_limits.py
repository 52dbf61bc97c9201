"""What a guide's family can reach: the same family fitted to draws of the truth."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import paramax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi.experiments.tasks import AbstractTask, RunData

_FOLDS = 5
_BATCH = 256
_CHECKS = 20


def family_limits(
    key: PRNGKeyArray, task: AbstractTask, data: RunData, *, steps: int = 4_000
) -> dict[str, float]:
    """Best mean log probability of held-out reference draws, by data set.

    The guide is fitted by maximum likelihood to four fifths of the draws, five times,
    and every draw is scored by the fit that has not seen it. Of the checks along the
    way the best counts, since a flow would go on to learn its draws by heart.

    Args:
        key: Random key.
        task: The task.
        data: Its data and reference draws.
        steps: Adam steps.

    Example:
        >>> from softcvi.experiments import references, tasks
        >>> task, source = tasks.LinearRegression(), references.BuiltinReferences()
        >>> data = task.data(jr.key(0), [0], source)
        >>> limits = family_limits(jr.key(1), task, data, steps=20)
        >>> list(limits)
        ['linear_regression, run 0']
    """
    first_run = [int(np.argmax(data.data_set == i)) for i in range(len(data.names))]
    observed = jax.tree_util.tree_map(lambda a: a[np.array(first_run)], data.observed)
    space = task.target(observed).space
    to_fit = jax.jit(jax.vmap(jax.vmap(space.from_model_and_log_det)))
    particles, log_dets = to_fit(data.draws)
    guide = task.guide(jr.fold_in(key, 0))
    fit = functools.partial(_fit_folds, guide=guide, flips=data.flips, steps=steps)
    with jax.default_matmul_precision("highest"):
        scores = [
            fit(jr.fold_in(key, i + 1), {k: v[i] for k, v in particles.items()})
            for i in range(len(data.names))
        ]
    shift = np.asarray(jnp.mean(log_dets, axis=1))
    best = [float(np.max(np.asarray(score))) for score in scores]
    return dict(zip(data.names, np.add(best, shift).tolist(), strict=True))


@functools.partial(eqx.filter_jit)
def _fit_folds(
    key: PRNGKeyArray,
    particles: PyTree,
    *,
    guide: PyTree,
    flips: dict[str, Array] | None,
    steps: int,
) -> Float[Array, " checks"]:
    """Mean score of held-out draws at every check."""
    num_draws = jax.tree_util.tree_leaves(particles)[0].shape[0]
    share = num_draws // _FOLDS
    order_key, fit_key = jr.split(key)
    order = jr.permutation(order_key, num_draws)[: share * _FOLDS].reshape(_FOLDS, -1)
    params, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )
    optimizer = _optimizer(guide.suggested_rate, steps)

    def mean_log_prob(params: PyTree, batch: PyTree) -> Array:
        unwrapped = paramax.unwrap(eqx.combine(params, static))
        return jnp.mean(jax.vmap(unwrapped.log_prob)(batch))

    def one_fold(held_out: Array, key: PRNGKeyArray) -> Array:
        # Rolling the order puts the held-out fold last.
        train = jnp.roll(order, -held_out - 1, axis=0)[:-1].reshape(-1)
        test = jax.tree_util.tree_map(lambda a: a[order[held_out]], particles)

        def step(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, None]:
            params, optimizer_state = state
            pick_key, flip_key = jr.split(key)
            picked = jr.choice(pick_key, train, (_BATCH,))
            batch = jax.tree_util.tree_map(lambda a: a[picked], particles)
            batch = _flipped(flip_key, batch, flips)
            grads = jax.grad(lambda p: -mean_log_prob(p, batch))(params)
            updates, optimizer_state = optimizer.update(grads, optimizer_state)
            return (optax.apply_updates(params, updates), optimizer_state), None

        def check(state: PyTree, keys: PRNGKeyArray) -> tuple[PyTree, Array]:
            state, _ = jax.lax.scan(step, state, keys)
            return state, mean_log_prob(state[0], test)

        keys = jr.split(key, (_CHECKS, max(1, steps // _CHECKS)))
        return jax.lax.scan(check, (params, optimizer.init(params)), keys)[1]

    keys = jr.split(fit_key, _FOLDS)
    return jnp.mean(jax.vmap(one_fold)(jnp.arange(_FOLDS), keys), axis=0)


def _optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    schedule = optax.cosine_decay_schedule(rate, steps)
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(schedule))


def _flipped(
    key: PRNGKeyArray, batch: PyTree, flips: dict[str, Array] | None
) -> PyTree:
    """Random signs where the posterior is even: four times the draws for SLCP."""
    if flips is None:
        return batch
    signs = {
        site: jnp.where(mask, jr.rademacher(key, batch[site].shape), 1)
        for site, mask in flips.items()
    }
    return {**batch, **{site: signs[site] * batch[site] for site in signs}}
