"""The compiled loop: everything between two looks of the host at a fit."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from softcvi._compile import fused, loop_in_rows, on_device
from softcvi.fitting._state import Batch, LoopState, Run
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, StepInfo
from softcvi.targets import AbstractTarget

# Bad densities are counted in skipped steps, too.
_ALWAYS_TOLD = np.array([False, False, False, False, True])


def advance(
    state: LoopState, start: Int[Array, ""], stop: Int[Array, ""], run: Run
) -> LoopState:
    """Run steps ``start`` to ``stop``; their number is not part of the program."""

    def step(i, carry, row):
        new = one_step(LoopState(*carry, row), i, run)
        return (new.params, new.optimizer_state), new.history

    carry, history = loop_in_rows(
        start,
        stop,
        run.record_every,
        step,
        (state.params, state.optimizer_state),
        state.history,
    )
    return LoopState(*carry, history)


@on_device
def advance_one(state: LoopState, start: Array, stop: Array, run: Run) -> LoopState:
    """Compiled ``advance`` for a single fit."""
    return advance(state, start, stop, run)


@on_device
def advance_many(
    state: LoopState, start: Array, stop: Array, run: Run, batch: Batch
) -> LoopState:
    """Compiled ``advance`` over a leading axis of fits; shared data is not copied."""

    def one(state: LoopState, own: dict[str, Any]) -> LoopState:
        return advance(state, start, stop, dataclasses.replace(run, **own))

    own = {"key": run.key, "static": run.static, "template": run.template}
    axes = {"key": 0, "static": batch.axes(), "template": batch.axes()}
    return eqx.filter_vmap(one, in_axes=(eqx.if_array(0), axes))(state, own)


def one_step(state: LoopState, step: Int[Array, ""], run: Run) -> LoopState:
    """Lines 1 to 3 of Algorithm 1, guarded against non-finite numbers."""
    key = jax.random.fold_in(fused(run.key), step)
    starting = step < run.startup_steps if run.has_startup else False

    def loss_fn(params):
        guide, target = run.unpack(params)
        objective = paramax.unwrap(run.objective)
        return step_loss(
            key, paramax.unwrap(guide), paramax.unwrap(target), objective, starting
        )

    (_, info), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    # The sum of squares is computed for clipping anyway, and finite only if all are.
    usable = info.usable & jnp.isfinite(_sum_of_squares(grads))
    params, optimizer_state = run.optimizer.guarded_update(
        grads, state.optimizer_state, state.params, step, run.total_steps, usable
    )
    # Counts are columns of the history: on a GPU each array of its own is a kernel.
    row = [info.excess, info.label_ess, info.elbo, jnp.ones(()), info.num_bad]
    row = jnp.stack([jnp.asarray(x, state.history.dtype) for x in row])
    row = jnp.where(usable | _ALWAYS_TOLD, row, 0.0)
    return LoopState(
        params=params,
        optimizer_state=optimizer_state,
        history=state.history + row,
    )


def step_loss(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    target: AbstractTarget,
    objective: AbstractObjective,
    starting: Array | bool,
) -> tuple[Array, StepInfo]:
    """The loss of one step: over the posterior, or over each datum of a batch."""
    if not target.amortised:
        data = target.draw_data(key)
        if data is not None:
            key = jax.random.fold_in(key, 1)
        return objective.loss(key, guide, target, data, starting)
    batch = target.draw_data(key)
    size = jax.tree_util.tree_leaves(batch)[0].shape[0]
    keys = jax.random.split(jax.random.fold_in(key, 1), size)
    losses, infos = jax.vmap(
        lambda k, datum: objective.loss(k, guide, target, datum, starting)
    )(keys, batch)
    info = StepInfo(
        excess=jnp.mean(infos.excess),
        label_ess=jnp.mean(infos.label_ess),
        elbo=jnp.mean(infos.elbo),
        num_bad=jnp.sum(infos.num_bad),
        usable=jnp.all(infos.usable),
    )
    return jnp.mean(losses), info


def _sum_of_squares(tree: PyTree) -> Array:
    return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree_util.tree_leaves(tree))
