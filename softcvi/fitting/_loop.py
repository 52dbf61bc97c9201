"""The compiled loop: everything between two looks of the host at a fit."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from softcvi._compile import fused, on_device
from softcvi.fitting._optimizer import AbstractOptimizer
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, StepInfo
from softcvi.targets import AbstractTarget

HISTORY_ROWS = 512
# Bad densities are counted in skipped steps, too.
_ALWAYS_TOLD = np.array([False, False, False, False, True])


class LoopState(eqx.Module):
    """What the next step needs.

    Attributes:
        params: Trainable arrays, one flat vector or the guide's own tree.
        optimizer_state: State of the optimiser.
        history: Sums of excess, label ESS, ELBO, usable steps and bad log densities,
            for each part of the run; within a part, its sums alone.
    """

    params: PyTree
    optimizer_state: PyTree
    history: Float[Array, "*rows 5"]

    @property
    def num_bad(self) -> int:
        """Log densities that were NaN or plus infinity."""
        return int(np.asarray(self.history, np.float64)[:, 4].sum())

    def num_skipped(self, steps: int) -> int:
        """How many of so many steps had no usable gradient."""
        return steps - int(np.asarray(self.history, np.float64)[:, 3].sum())


class Run(eqx.Module):
    """What stays the same over all steps of a fit; every number in it is traced.

    Attributes:
        key: Step i uses ``fold_in(key, i)``, whatever the chunks.
        static: Guide and target without the trainable arrays.
        template: Trainable arrays at the start, which says how to unflatten them.
        objective: The objective.
        optimizer: The optimiser.
        total_steps: Length of the run, for the schedule.
        startup_steps: Length of the start-up phase.
        has_startup: Whether there is one; without it the program is smaller.
        record_every: Steps that share one row of the history.
    """

    key: PRNGKeyArray
    static: PyTree
    template: PyTree
    objective: AbstractObjective
    optimizer: AbstractOptimizer
    total_steps: Int[Array, ""]
    startup_steps: Int[Array, ""]
    record_every: Int[Array, ""]
    has_startup: bool = eqx.field(static=True)

    def unpack(self, params: PyTree) -> tuple[AbstractGuide, AbstractTarget]:
        """Guide and target with these parameters in place, still wrapped."""
        if self.optimizer.flat:
            params = ravel_pytree(self.template)[1](params)
        return eqx.combine(params, self.static)


def prepare(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    target: AbstractTarget,
    objective: AbstractObjective,
    optimizer: AbstractOptimizer,
    steps: int,
    startup_steps: int,
) -> tuple[LoopState, Run]:
    """Split what is trained from what is not, and make the first state."""
    spec = (trainable(guide), _trainable_model(target, objective))
    template, static = eqx.partition(
        (guide, target), spec, is_leaf=lambda x: isinstance(x, paramax.NonTrainable)
    )
    params = ravel_pytree(template)[0] if optimizer.flat else template
    state = LoopState(
        params=params,
        optimizer_state=optimizer.init(params),
        history=jnp.zeros((HISTORY_ROWS, 5)),
    )
    run = Run(
        key=key,
        static=static,
        template=template,
        objective=_traced(objective),
        optimizer=optimizer,
        total_steps=jnp.asarray(steps, jnp.int32),
        startup_steps=jnp.asarray(startup_steps, jnp.int32),
        record_every=jnp.asarray(max(1, -(-steps // HISTORY_ROWS)), jnp.int32),
        has_startup=startup_steps > 0,
    )
    return state, run


def _traced(objective: AbstractObjective) -> AbstractObjective:
    """Numbers such as alpha as arrays, so that another value needs no compilation."""
    return jax.tree_util.tree_map(
        lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, objective
    )


def trainable(tree: PyTree) -> PyTree:
    """Filter that is True at float arrays that are not frozen."""
    return jax.tree_util.tree_map(
        lambda leaf: eqx.is_inexact_array(leaf),
        tree,
        is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable),
    )


def _trainable_model(target: AbstractTarget, objective: AbstractObjective) -> PyTree:
    if objective.trains_model:
        return target.trainable()
    return jax.tree_util.tree_map(lambda _: False, target)


def advance(
    state: LoopState, start: Int[Array, ""], stop: Int[Array, ""], run: Run
) -> LoopState:
    """Run steps ``start`` to ``stop``; their number is not part of the program.

    Products are computed in full precision: accelerators round them to 10 bits by
    default, which is enough for a network and too little for a log density.

    The steps of one row of the history are a loop of their own that knows this row
    alone: XLA's CPU runs a loop whose arrays are all small without its thread pool,
    and the whole history is not small. Eight schools' step takes 17 us instead of 42.
    """
    every = run.record_every

    def fill(row, state: LoopState) -> LoopState:
        empty = jnp.zeros_like(state.history[0])
        inner = jax.lax.fori_loop(
            jnp.maximum(start, row * every),
            jnp.minimum(stop, (row + 1) * every),
            lambda i, s: one_step(s, i, run),
            LoopState(state.params, state.optimizer_state, empty),
        )
        history = state.history.at[row].add(inner.history)
        return LoopState(inner.params, inner.optimizer_state, history)

    with jax.default_matmul_precision("highest"):
        return jax.lax.fori_loop(start // every, -(-stop // every), fill, state)


@on_device
def advance_one(state: LoopState, start: Array, stop: Array, run: Run) -> LoopState:
    """Compiled ``advance`` for a single fit."""
    return advance(state, start, stop, run)


@on_device
def advance_many(
    state: LoopState, start: Array, stop: Array, run: Run, axes: Any
) -> LoopState:
    """Compiled ``advance`` over a leading axis of fits; ``axes`` are those of run."""
    return eqx.filter_vmap(advance, in_axes=(eqx.if_array(0), None, None, axes))(
        state, start, stop, run
    )


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
    # The counts ride in the history: on a GPU each number of its own is a kernel.
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
