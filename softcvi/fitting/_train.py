"""Training: from a guide at its start to a result, for one fit or many at once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PyTree, Shaped

from softcvi._compile import as_array, host_key, rehearse
from softcvi.diagnostics._examine import prepare_examination
from softcvi.fitting._checks import explain_nothing_usable
from softcvi.fitting._compare import is_worse, quality_of
from softcvi.fitting._devices import Devices
from softcvi.fitting._drive import Advance, Host, Outcome, drive
from softcvi.fitting._history import History
from softcvi.fitting._interrupt import (
    Abandoned,
    CallbackFailure,
    Patience,
    callback_failures,
    first_line,
    wait_for,
)
from softcvi.fitting._loop import (
    Batch,
    LoopState,
    Run,
    advance_by_effort,
    advance_many,
    advance_one,
    prepare,
    taken,
)
from softcvi.fitting._optimizer import as_optimizer
from softcvi.fitting._result import CHECK_DRAWS, FitError, FitResult
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, with_model_parameters
from softcvi.posterior import Posterior
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable, effort_of, on_one_core

_DEGENERATE_LABELS = 1.15
# A fit with fewer usable steps than this share has failed.
_USABLE_SHARE = 0.5
# Draws to compare start and end by: of many fits, of a model that is called back, and
# of one that takes more operations.
_FEW_DRAWS = 500
_FEWEST_DRAWS = 16
_BUDGET = 3e10
# Beside the time of the fit itself, for a comparison that has to be compiled.
_COMPILING_SECONDS = 20.0
# A fit with fewer trained numbers (as of normals and t's) and fewer operations in all
# log densities is compiled with little optimisation.
_FEW_PARAMETERS = 5_000
_LITTLE_WORK = 5e9
# Not the draws of the verdict, which must be fresh.
_COMPARE_SEED = 20_24


@dataclasses.dataclass
class Plan:
    """What is the same for every guide that a fit tries.

    Attributes:
        steps: Steps that the user asked for.
        learning_rate: Peak rate, if the user gave one.
        optimizer: The user's optimiser, if there is one.
        host: Stopping rule, reporter and checkpoint.
        throw: Whether a failed fit raises.
    """

    steps: int
    learning_rate: float | None
    optimizer: Any
    host: Host
    throw: bool


def train(
    key: Shaped[Array, "*runs"],
    target: AbstractTarget,
    guide: AbstractGuide,
    plan: Plan,
    *,
    objective: AbstractObjective,
    startup_steps: int,
    batch: Batch | None = None,
) -> list[FitResult]:
    """Train a guide from where it is; one result per run.

    Args:
        key: Random key; with ``batch`` one per run.
        target: The target.
        guide: The guide at its start.
        plan: What the user asked for.
        objective: The objective.
        startup_steps: Steps in which alpha follows label ESS.
        batch: For many fits at once, what has a leading axis of runs.
    """
    one = target if batch is None else batch.one(0, guide, target)[1]
    objective = with_model_parameters(objective, one)
    steps = plan.host.stopping.limit_steps(plan.steps, objective.num_evaluations)
    optimizer = as_optimizer(
        plan.optimizer, plan.learning_rate, guide.suggested_rate, guide.suggested_clip
    )
    first, run = prepare(
        key, guide, target, objective, optimizer, steps, startup_steps, batch
    )

    begin = begin_verdict = _prepare_nothing
    if batch is None:
        program = advance_for(target, objective, first.params, steps)
        advance = _advance_one(program, run)
        begin = functools.partial(_prepare_loop, program, first, run)
        begin_verdict = functools.partial(_prepare_verdict, first, run)
    else:
        advance = _advance_many(run, batch)

    def refuse() -> str:
        one_guide, one_target = (
            (guide, target) if batch is None else batch.one(0, guide, target)
        )
        return explain_nothing_usable(jax.random.key(0), one_guide, one_target)

    with on_one_core(one):
        outcome = drive(
            advance,
            first,
            run,
            plan.host,
            evaluations_per_step=objective.num_evaluations,
            refuse=refuse,
            prepare=begin,
            prepare_verdict=begin_verdict,
        )
    if batch is None:
        return [_result(outcome, first, outcome.state, run, CHECK_DRAWS)]
    return [
        _result(
            outcome,
            taken(first, i),
            taken(outcome.state, i),
            run.one(i, batch),
            _FEW_DRAWS,
        )
        for i in range(batch.runs)
    ]


def advance_for(
    target: AbstractTarget, objective: AbstractObjective, params: PyTree, steps: int
) -> Callable[[LoopState, Array, Array, Run], LoopState]:
    """The loop of a single fit, compiled such that it takes less time in all.

    Quickly compiled steps take 0 to 17 % longer for normals and t's, which all of the
    paper's tasks make up for, and up to a half longer for flows. What decides is
    counted and not timed, so that equal fits have equal answers.

    Args:
        target: The posterior.
        objective: The objective.
        params: What is trained.
        steps: Steps of the fit.
    """
    size = sum(leaf.size for leaf in jax.tree_util.tree_leaves(params))
    # The cost of callbacks and of mini-batches is unknown.
    is_known = target.has_gradient and not target.amortised
    is_known = is_known and target.draw_data(host_key(0)) is None
    if jax.default_backend() != "cpu" or size > _FEW_PARAMETERS or not is_known:
        return advance_one
    each = objective.num_evaluations
    most = affordable(target, _LITTLE_WORK, fewest=0, most=steps, each=each)
    return advance_by_effort[effort_of(target)] if most == steps else advance_one


def _prepare_loop(program: Callable, first: LoopState, run: Run) -> None:
    none = as_array(0, np.int32)
    rehearse(program, first, none, none, run)


def _prepare_verdict(first: LoopState, run: Run) -> None:
    prepare_examination(Posterior(*run.unpack(first.params)))


def _prepare_nothing() -> None:
    """Many fits at once are one program, with nothing to compile beside it."""


def _advance_one(program: Callable, run: Run) -> Advance:
    def advance(state: LoopState, start: Array, stop: Array) -> LoopState:
        return program(state, start, stop, run)

    return advance


def _advance_many(run: Run, batch: Batch) -> Advance:
    """All runs at once, over all devices of this process."""
    devices = Devices.for_runs(batch.runs)
    placed = run.over(devices, batch)

    def advance(state: LoopState, start: Array, stop: Array) -> LoopState:
        state = advance_many(devices.spread(state), start, stop, placed, batch)
        # What is kept between chunks does not depend on the number of devices.
        return devices.without_filling(state)

    return advance


def raise_if_failed(results: list[FitResult], throw: bool) -> None:
    """Raise ``FitError`` for the first failed run, if that was asked for."""
    failed = [result for result in results if result.status == "failed"]
    if failed and throw:
        raise FitError(failed[0].message, failed[0]) from failed[0].error


def _result(
    outcome: Outcome, first: LoopState, last: LoopState, run: Run, num_draws: int
) -> FitResult:
    """Put the fitted parameters back into guide and target, and read the history."""
    history = History.from_sums(last.history, int(run.record_every), outcome.steps)
    num_particles = run.objective.num_particles
    skipped = outcome.steps - last.num_usable
    status, message = outcome.status, outcome.message
    if status != "failed" and skipped > (1 - _USABLE_SHARE) * max(outcome.steps, 1):
        status, message = (
            "failed",
            f"{skipped} of {outcome.steps} steps had no finite label or gradient; "
            "check the log density of this run",
        )
    label_ess = history.last()["label_ess"] if outcome.steps else float("nan")
    uses_labels = run.objective.uses_labels
    if uses_labels and num_particles >= 4 and label_ess < _DEGENERATE_LABELS:
        message += (
            f"; label ESS stayed at {label_ess:.2f} of {num_particles}: one particle "
            "takes all the weight: use a richer guide (low_rank, full_rank, a flow) or "
            "more particles"
        )
    end, num_infinite = Posterior(*run.unpack(last.params)), last.num_infinite
    if status in ("finished", "stopped") and not outcome.abandoned:
        start = Posterior(*run.unpack(first.params))
        if status == "stopped":
            # A model that is slow must not take much longer after its time is over.
            evaluations = outcome.steps * run.objective.num_evaluations
            num_draws = min(num_draws, max(evaluations // 2, _FEWEST_DRAWS))
        # So little that only a model that has become slower takes as long as the fit.
        patience = Patience(_has_ended, outcome.seconds_run + _COMPILING_SECONDS)
        compare = functools.partial(_better, start, end, num_draws)
        try:
            is_limited = status == "stopped"
            end, note, more = wait_for(compare, patience) if is_limited else compare()
            num_infinite += more
        except Abandoned:
            note = "; not compared with its start, as the model became too slow"
        except KeyboardInterrupt:
            status, note = "interrupted", "; interrupted before it was compared"
        message += note
    return FitResult(
        posterior=end,
        status=status,
        message=message,
        history=history,
        steps=outcome.steps,
        num_particles=num_particles,
        num_bad_densities=last.num_bad,
        num_infinite_densities=num_infinite,
        num_skipped_steps=skipped,
        seconds_start=0.0,
        seconds_compile=outcome.seconds_compile,
        seconds_run=outcome.seconds_run,
        uses_labels=uses_labels,
        error=outcome.error,
        model_answers=not outcome.abandoned,
    )


def _has_ended() -> str:
    return "the fit has ended"


def _better(
    start: Posterior, end: Posterior, num_draws: int
) -> tuple[Posterior, str, int]:
    """The end of a fit, or its start where that is better, and what to say of it.

    The last number is that of draws whose log density is plus infinity.
    """
    target = end.target
    assert target is not None  # a fit has one
    # All data at once can be far more than the whole fit has read.
    if target.amortised or target.draw_data(host_key(0)) is not None:
        return end, "", 0
    few = min(num_draws, _FEW_DRAWS)
    draws = few
    if target.has_gradient:
        draws = affordable(target, _BUDGET, fewest=few, most=num_draws)
    key = host_key(_COMPARE_SEED)
    try:
        with callback_failures():
            samples = [p.importance(key, draws) for p in (start, end)]
    except CallbackFailure as failure:
        return end, f"; then the model failed: {first_line(failure)}", 0
    num_infinite = int(sum(np.sum(np.isposinf(s.log_p)) for s in samples))
    before, after = map(quality_of, samples)
    if not is_worse(after, before):
        return end, "", num_infinite
    note = (
        f"; training made the guide worse (ELBO {before.elbo:.2f} before, "
        f"{after.elbo:.2f} after): the guide as it was before is kept"
    )
    return start, note, num_infinite
