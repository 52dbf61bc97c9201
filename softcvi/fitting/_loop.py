"""The compiled loop: its state, what stays the same, and one step."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Shaped

from softcvi._compile import (
    as_array,
    by_effort,
    fused,
    host_ravel,
    host_unravel,
    loop_in_rows,
    on_device,
    rarely_run,
)
from softcvi.fitting._devices import Devices
from softcvi.fitting._optimizer import AbstractOptimizer
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, StepInfo
from softcvi.targets import AbstractTarget

HISTORY_ROWS = 512


class LoopState(eqx.Module):
    """What the next step needs.

    Attributes:
        params: Trainable arrays, one flat vector or the guide's own tree.
        optimizer_state: State of the optimiser.
        history: Sums of excess, label ESS, ELBO, usable steps, bad log densities and
            those that are plus infinity of each part of the run; inside the loop, of
            the current part alone.
    """

    params: PyTree
    optimizer_state: PyTree
    history: Float[Array, "*rows 6"]

    @property
    def num_bad(self) -> int:
        """Log densities that were NaN or plus infinity."""
        return int(np.asarray(self.history, np.float64)[..., 4].sum())

    @property
    def num_infinite(self) -> int:
        """Log densities that were plus infinity."""
        return int(np.asarray(self.history, np.float64)[..., 5].sum())

    @property
    def num_usable(self) -> int:
        """Steps with a usable gradient, over all fits of a batch."""
        return int(np.asarray(self.history, np.float64)[..., 3].sum())


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

    key: Shaped[Array, "*runs"]
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
            params = host_unravel(params, self.template)
        return eqx.combine(params, self.static)

    def one(self, i: int, batch: "Batch") -> "Run":
        """The run with this number of a batch."""
        return dataclasses.replace(
            self,
            key=self.key[i],
            static=batch.one(i, *self.static),
            template=batch.one(i, *self.template),
        )

    def over(self, devices: Devices, batch: "Batch") -> "Run":
        """The runs of a batch, spread over devices."""
        return dataclasses.replace(
            self,
            key=devices.spread(self.key),
            static=batch.over(devices, *self.static),
            template=batch.over(devices, *self.template),
            objective=devices.copied(self.objective),
            optimizer=devices.copied(self.optimizer),
        )


class Batch(eqx.Module):
    """Which parts of many fits have a leading axis of runs; the others are shared.

    Attributes:
        runs: Number of fits.
        guide: Whether each fit has a starting guide of its own.
        target: Whether each fit has a target of its own.
    """

    runs: int = eqx.field(static=True)
    guide: bool = eqx.field(static=True)
    target: bool = eqx.field(static=True)

    def axes(self) -> tuple[Any, Any]:
        """The axes of guide and target, leaf by leaf."""
        guide, target = (eqx.if_array(0) if own else None for own in self._own)
        return guide, target

    def one(self, i: int, guide: PyTree, target: PyTree) -> tuple[PyTree, PyTree]:
        """Guide and target of one run."""
        pairs = zip((guide, target), self._own, strict=True)
        guide, target = (taken(part, i) if own else part for part, own in pairs)
        return guide, target

    def over(
        self, devices: Devices, guide: PyTree, target: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Guide and target: own ones beside their runs, shared ones everywhere."""
        pairs = zip((guide, target), self._own, strict=True)
        guide, target = (
            devices.spread(part) if own else devices.copied(part) for part, own in pairs
        )
        return guide, target

    @property
    def _own(self) -> tuple[bool, bool]:
        return self.guide, self.target


def taken(tree: PyTree, i: int) -> PyTree:
    """One row of every array."""
    return jax.tree_util.tree_map(
        lambda leaf: leaf[i] if eqx.is_array(leaf) else leaf, tree
    )


def prepare(
    key: Shaped[Array, "*runs"],
    guide: AbstractGuide,
    target: AbstractTarget,
    objective: AbstractObjective,
    optimizer: AbstractOptimizer,
    steps: int,
    startup_steps: int,
    batch: Batch | None = None,
) -> tuple[LoopState, Run]:
    """Split what is trained from what is not, and make the first state.

    Args:
        key: Random key; with ``batch`` one per run.
        guide: Starting guide.
        target: The target.
        objective: The objective.
        optimizer: The optimiser.
        steps: Length of the run.
        startup_steps: Length of the start-up phase.
        batch: For many fits at once, what has a leading axis of runs.
    """
    spec = (trainable(guide), _trainable_model(target, objective))
    template, static = eqx.partition(
        (guide, target), spec, is_leaf=lambda x: isinstance(x, paramax.NonTrainable)
    )

    if batch is None:
        make_state = _first_state if optimizer.flat else _any_first_state
        state = make_state(template, optimizer)
    else:
        make = eqx.filter_vmap(
            _first_state, in_axes=(batch.axes(), None), axis_size=batch.runs
        )
        state = make(template, optimizer)
    run = Run(
        key=key,
        static=static,
        template=template,
        objective=_traced(objective),
        optimizer=optimizer,
        total_steps=as_array(steps, jnp.int32),
        startup_steps=as_array(startup_steps, jnp.int32),
        record_every=as_array(max(1, -(-steps // HISTORY_ROWS)), jnp.int32),
        has_startup=startup_steps > 0,
    )
    return state, run


def _first_state(template: PyTree, optimizer: AbstractOptimizer) -> LoopState:
    params = host_ravel(template) if optimizer.flat else template
    return LoopState(
        params=params,
        optimizer_state=optimizer.init(params),
        history=as_array(np.zeros((HISTORY_ROWS, 6))),
    )


# Jitted, since otherwise each operation would be compiled separately.
_any_first_state = rarely_run(_first_state, effort=0)


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


# Bad densities are counted in skipped steps, too.
_ALWAYS_TOLD = np.array([False, False, False, False, True, True])


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


def _advance_one(state: LoopState, start: Array, stop: Array, run: Run) -> LoopState:
    return advance(state, start, stop, run)


# For a single fit; and for a fit that takes less time than full optimisation.
advance_one = on_device(_advance_one)
advance_by_effort = by_effort(_advance_one)


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
    row = [info.excess, info.label_ess, info.elbo, jnp.ones(())]
    row += [info.num_bad, info.num_infinite]
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
        num_infinite=jnp.sum(infos.num_infinite),
        usable=jnp.all(infos.usable),
    )
    return jnp.mean(losses), info


def _sum_of_squares(tree: PyTree) -> Array:
    return sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree_util.tree_leaves(tree))
