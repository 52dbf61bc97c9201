"""A guide's family fitted to reference draws by maximum likelihood.

Its score is not a limit: the fit has an error of its own, and guides trained on the
density can score higher.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import paramax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi.guides import AbstractGuide
from softcvi.targets import DensityTarget
from softcvi_experiments.tasks import AbstractTask, Refresh, RunData

_BATCH = 256
_CHECKS = 20
_STEPS = 20_000
_FOLDS = 5
# Draws that are refreshed do not run out, so that half of them teach as much; the
# flow that learns from them costs far more per step and settles in fewer.
_STEPS_IF_REFRESHED = 3_000
_FOLDS_IF_REFRESHED = 2


def family_limits(
    key: PRNGKeyArray, task: AbstractTask, data: RunData, *, steps: int | None = None
) -> dict[str, float]:
    """Best mean log probability of held-out reference draws, by data set.

    The guide is fitted by maximum likelihood to all draws but one fold, for every
    fold, and each draw is scored by the fit that has not seen it. Of the checks along
    the way the best counts, since a flow would go on to learn its draws by heart.

    Args:
        key: Random key.
        task: The task.
        data: Its data and reference draws.
        steps: Adam steps; by default enough to settle.

    Example:
        >>> from softcvi_experiments import references, tasks
        >>> task, source = tasks.LinearRegression(), references.BuiltinReferences()
        >>> data = task.data(jr.key(0), [0], source)
        >>> limits = family_limits(jr.key(1), task, data, steps=20)
        >>> list(limits)
        ['linear_regression, run 0']
    """
    if steps is None:
        steps = _STEPS if data.refresh is None else _STEPS_IF_REFRESHED
    guide = task.guide(jr.fold_in(key, 0))
    limits = {}
    for i, name in enumerate(data.names):
        first_run = int(np.argmax(data.data_set == i))
        observed = {site: value[first_run] for site, value in data.observed.items()}
        with jax.default_matmul_precision("highest"):
            scores = _fit_folds(
                jr.fold_in(key, i + 1),
                guide,
                task.target(observed),
                {site: value[i] for site, value in data.draws.items()},
                refresh=data.refresh,
                steps=steps,
            )
        limits[name] = float(jnp.max(scores))
    return limits


@eqx.filter_jit
def _fit_folds(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    target: DensityTarget,
    draws: dict[str, Array],
    *,
    refresh: Refresh | None,
    steps: int,
) -> Float[Array, " checks"]:
    """Mean score of held-out draws at every check."""
    folds = _FOLDS if refresh is None else _FOLDS_IF_REFRESHED
    num_draws = len(next(iter(draws.values())))
    order_key, fit_key = jr.split(key)
    order = jr.permutation(order_key, num_draws)
    order = order[: num_draws - num_draws % folds].reshape(folds, -1)
    params, static = eqx.partition(
        guide,
        eqx.is_inexact_array,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )
    optimizer = _optimizer(guide.suggested_rate, steps)

    def mean_log_prob(params: PyTree, batch: dict[str, Array]) -> Array:
        unwrapped = paramax.unwrap(eqx.combine(params, static))

        def one(x: dict[str, Array]) -> Array:
            u, log_det = target.space.from_model_and_log_det(x)
            return unwrapped.log_prob(u) + log_det

        return jnp.mean(jax.vmap(one)(batch))

    def one_fold(held_out: Array, key: PRNGKeyArray) -> Array:
        # Rolling the order puts the held-out fold last.
        train = jnp.roll(order, -held_out - 1, axis=0)[:-1].reshape(-1)
        test = {site: value[order[held_out]] for site, value in draws.items()}

        def step(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, None]:
            params, optimizer_state = state
            pick_key, refresh_key = jr.split(key)
            picked = jr.choice(pick_key, train, (_BATCH,))
            batch = {site: value[picked] for site, value in draws.items()}
            if refresh is not None:
                batch = jax.vmap(refresh, in_axes=(0, 0, None))(
                    jr.split(refresh_key, _BATCH), batch, target.observed
                )
            grads = jax.grad(lambda p: -mean_log_prob(p, batch))(params)
            updates, optimizer_state = optimizer.update(grads, optimizer_state)
            return (optax.apply_updates(params, updates), optimizer_state), None

        def check(state: PyTree, keys: PRNGKeyArray) -> tuple[PyTree, Array]:
            state, _ = jax.lax.scan(step, state, keys)
            return state, mean_log_prob(state[0], test)

        keys = jr.split(key, (_CHECKS, max(1, steps // _CHECKS)))
        return jax.lax.scan(check, (params, optimizer.init(params)), keys)[1]

    keys = jr.split(fit_key, folds)
    return jnp.mean(jax.vmap(one_fold)(jnp.arange(folds), keys), axis=0)


def _optimizer(rate: float, steps: int) -> optax.GradientTransformation:
    schedule = optax.cosine_decay_schedule(rate, steps)
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(schedule))
