"""``fit``: from a target to a posterior. Checks, normalises and delegates."""

import functools
import os
import time
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from softcvi.fitting._checkpoint import Checkpoint, as_checkpoint
from softcvi.fitting._checks import (
    check_guide,
    check_steps,
    check_support,
    check_target,
    checked_key,
    explain_nothing_usable,
)
from softcvi.fitting._drive import drive
from softcvi.fitting._finish import make_result
from softcvi.fitting._loop import LoopState, Run, advance_one, prepare
from softcvi.fitting._optimizer import as_optimizer
from softcvi.fitting._progress import AbstractReporter, as_reporter
from softcvi.fitting._result import FitError, FitResult
from softcvi.fitting._starts import fit_from_starts
from softcvi.fitting._stopping import AbstractStoppingRule, Never
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI
from softcvi.starts import InBestSpace, NoStart, as_start, suggest
from softcvi.starts._explore import Explore
from softcvi.starts._place import (
    STARTUP_SHARE,
    can_be_placed,
    place,
    starting_rate,
)
from softcvi.targets import AbstractTarget


def fit(
    key: PRNGKeyArray,
    target: AbstractTarget,
    guide: AbstractGuide | None = None,
    *,
    objective: AbstractObjective | None = None,
    steps: int = 10_000,
    learning_rate: float | None = None,
    optimizer: Any = None,
    start: Any = "auto",
    starts: int = 1,
    stopping: AbstractStoppingRule | None = None,
    progress: bool | AbstractReporter = True,
    checkpoint: Checkpoint | str | os.PathLike | None = None,
    throw: bool = True,
) -> FitResult:
    """Fit a guide to a posterior that is known up to a constant.

    Args:
        key: Random key; the same key gives the same answer.
        target: The posterior, from ``DensityTarget`` or ``softcvi.adapters``.
        guide: The family to fit; by default one that suits the target.
        objective: ``SoftCVI()`` by default.
        steps: Optimisation steps.
        learning_rate: Peak rate of Adam with warm-up and decay to zero; by default what
            suits the guide.
        optimizer: Any optax transformation instead.
        start: ``"auto"`` looks for the posterior first (Newton paths where the model
            has a gradient, otherwise a phase in which alpha follows label ESS);
            ``"prior"``, a point or draws in model coordinates, a fitted posterior, or
            None for no start-up at all.
        starts: Dispersed starts, run in one program and ranked by evidence; where they
            find different modes the answer is a mixture of them.
        stopping: A rule of ``softcvi.fitting``; by default all steps are run.
        progress: Show a bar on a terminal; or a reporter of ``softcvi.fitting``.
        checkpoint: File to keep the state in, and to resume from.
        throw: Raise ``FitError`` if the fit fails; otherwise the result says so.

    Returns:
        The posterior with its status, history and verdict.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * jnp.sum((t["x"] - 3.0) ** 2), {"x": jnp.zeros(2)}
        ... )
        >>> result = softcvi.fit(jax.random.key(0), target, steps=500, progress=False)
        >>> draws = result.posterior.sample(jax.random.key(1), 1000)
        >>> bool(abs(draws["x"].mean() - 3.0) < 0.1)
        True
    """
    key = checked_key(key)
    check_steps(steps)
    if isinstance(starts, bool) or not isinstance(starts, int) or starts < 1:
        raise ValueError(f"starts: must be an integer of at least 1; got {starts!r}.")
    objective = SoftCVI() if objective is None else objective
    stopping = Never() if stopping is None else stopping
    check_target(target, objective)
    start_key, choice_key, support_key, run_key = jax.random.split(key, 4)
    if guide is not None:
        check_guide(guide, target)
        check_support(support_key, guide, target)
    as_optimizer(optimizer, learning_rate, 1.0)  # refuse a bad rate before any work
    steps = stopping.limit_steps(steps, objective.num_particles)
    if starts > 1 and guide is not None:
        if checkpoint is not None:
            raise ValueError(
                "checkpoint: not kept for several starts of a given guide. Leave it "
                "out, or use starts=1."
            )
        return fit_from_starts(
            run_key,
            target,
            guide,
            starts,
            objective=objective,
            steps=steps,
            learning_rate=learning_rate,
            optimizer=optimizer,
            start=start,
            stopping=stopping,
            progress=progress,
        )

    began = time.perf_counter()
    given = guide
    target, guide, startup_steps, choices = _begin(
        start_key, choice_key, target, guide, start, starts, steps
    )
    seconds_start = time.perf_counter() - began

    placed = given is not None and guide is not given
    optimizer = as_optimizer(
        optimizer, learning_rate, starting_rate(guide, placed), guide.suggested_clip
    )
    state, run = prepare(
        run_key, guide, target, objective, optimizer, steps, startup_steps
    )

    def refuse_unusable(state: LoopState, step: int) -> None:
        if state.num_skipped(step) >= step:
            raise ValueError(explain_nothing_usable(support_key, guide, target))

    outcome = drive(
        functools.partial(_advance, run=run),
        state,
        run,
        steps=steps,
        record_every=int(run.record_every),
        evaluations_per_step=objective.num_particles,
        stopping=stopping,
        reporter=as_reporter(progress),
        checkpoint=as_checkpoint(checkpoint),
        on_first_chunk=refuse_unusable,
    )
    result = make_result(outcome, run, choices, seconds_start)
    if outcome.error is not None and throw:
        raise FitError(result.message, result) from outcome.error
    return result


def _advance(state: LoopState, start, stop, *, run: Run) -> LoopState:
    return advance_one(state, start, stop, run)


def _begin(start_key, choice_key, target, guide, start, starts, steps):
    """Target and guide at the start, and the length of the start-up phase."""
    start = as_start(start, target, paths=starts)
    is_none, is_auto = isinstance(start, NoStart), isinstance(start, Explore)
    startup_steps = 0 if is_none else int(STARTUP_SHARE * steps)
    if guide is not None and (is_none or (is_auto and not can_be_placed(guide))):
        how = "the guide as given" + (", then alpha by label ESS" if is_auto else "")
        return target, guide, startup_steps, {"start": how}
    if guide is None:
        report = InBestSpace(start).find(start_key, target)
        choice = suggest(choice_key, report)[-1]
        choices = {"start": report.description, "guide": choice.description}
        startup_steps = 0 if report.modes else startup_steps
        return report.target, choice.guide, startup_steps, choices
    report = start.find(start_key, target)
    choices = {"start": report.description}
    if not report.modes:
        return target, guide, startup_steps, choices
    placed = place(guide, report.modes[0].mean, report.modes[0].dense)
    if placed is None:
        raise ValueError(
            f"start: a {type(guide).__name__} of this kind cannot be moved to given "
            "moments. Use start='auto', or set its parameters yourself and start=None."
        )
    return target, placed, 0, choices
