"""``fit``: from a target to a posterior. Checks, normalises and delegates."""

import dataclasses
import functools
import os
import time
from typing import Any

from jaxtyping import PRNGKeyArray

from softcvi._compile import (
    collected_rarely,
    full_precision,
    host_fold_in,
    host_split,
    make_room,
)
from softcvi.fitting._begin import (
    Beginning,
    enough_steps,
    failed_start,
    placed,
    suggested,
)
from softcvi.fitting._by_parts import fitted_by_parts, is_clear
from softcvi.fitting._cache import cache_by_default
from softcvi.fitting._checkpoint import Checkpoint, as_checkpoint
from softcvi.fitting._checks import (
    check_count,
    check_guide,
    check_support,
    check_target,
    checked_key,
)
from softcvi.fitting._correct import better_of, by_other_means
from softcvi.fitting._drive import Host
from softcvi.fitting._interrupt import (
    CallbackFailure,
    callback_failures,
    first_line,
    interrupted,
)
from softcvi.fitting._modes import fit_from_starts
from softcvi.fitting._optimizer import as_optimizer
from softcvi.fitting._progress import AbstractReporter, as_reporter
from softcvi.fitting._result import FitResult
from softcvi.fitting._stopping import AbstractStoppingRule, Never
from softcvi.fitting._stuck import CallsLimited
from softcvi.fitting._train import Plan, raise_if_failed, train
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI
from softcvi.starts import AbstractStart, Explore, NoStart, as_start, suggest
from softcvi.targets import AbstractTarget

# Number of the key of a second start.
_AGAIN = 1_000
_PARTS = 1_001


@collected_rarely
@full_precision
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

    Without a guide, the cheapest one that is trusted after correction is taken: a
    normal or a Student's t where that will do, and only otherwise a flow is trained.
    ``softcvi.fit_until`` goes on from there to deeper flows and Markov chains until the
    answer is trusted or its budget is spent.

    Args:
        key: Random key; the same key gives the same answer.
        target: The posterior, from ``DensityTarget`` or ``softcvi.adapters``.
        guide: The family to fit; by default the cheapest that suits the target.
        objective: By default ``SoftCVI()``; for a normal or a t that the program chose
            itself ``SoftCVI(16, TemperedProposal(1.0))``, whose optimum has the
            posterior's moments.
        steps: Optimisation steps, of each guide that is tried; fewer with more than 100
            parameters, or a log density of millions of operations, where the start's
            own normal already has even weights.
        learning_rate: Peak rate of Adam with warm-up and decay to zero; by default what
            suits the guide.
        optimizer: Any optax transformation instead.
        start: ``"auto"`` looks for the posterior first (Newton paths where the model
            has a gradient, otherwise a phase in which alpha follows label ESS);
            ``"prior"``, a point or draws in model coordinates, a fitted posterior, or
            None for no start-up at all.
        starts: With a guide: dispersed starts, run in one program and ranked by
            evidence; where they find different modes the answer is a mixture of them.
            Without one: at least so many paths look for modes before the guide is
            chosen.
        stopping: A rule of ``softcvi.fitting``; by default all steps are run. Limits of
            time and evaluations hold for all guides that are tried together.
        progress: Show a bar on a terminal; or a reporter of ``softcvi.fitting``.
        checkpoint: File to keep the state in, and to resume from.
        throw: Raise ``FitError`` if the fit fails; otherwise the result says so.

    Returns:
        The posterior with its status, history and verdict. It is never worse than the
        guide at the start: where training made it worse, the start is given back.
        A sum over independent parts, with several modes or a guide that is not
        trusted, is fitted part by part: ``parts``.
        Where no guide is trusted, ``sample`` gives draws of chains that began at those
        of the guide, if the model has a gradient, the chains agree and no stopping rule
        was given.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * jnp.sum((t["x"] - 3.0) ** 2), {"x": jnp.zeros(2)}
        ... )
        >>> result = softcvi.fit(jax.random.key(0), target, steps=500, progress=False)
        >>> draws = result.sample(jax.random.key(1), 1000)
        >>> bool(abs(draws["x"].mean() - 3.0) < 0.1)
        True
    """
    cache_by_default()
    make_room()
    key = checked_key(key)
    check_count("steps", steps)
    check_count("starts", starts)
    stopping = Never() if stopping is None else stopping
    check_target(target, SoftCVI() if objective is None else objective)
    start_key, choice_key, support_key, run_key = host_split(key, 4)
    if guide is not None:
        check_guide(guide, target)
    as_optimizer(optimizer, learning_rate, 1.0)  # refuse a bad rate before any work
    host = Host(stopping, as_reporter(progress), as_checkpoint(checkpoint))
    plan = Plan(steps, learning_rate, optimizer, host, throw)

    began = time.perf_counter()
    start = as_start(start, target, paths=starts if guide is None else 1)
    calls = CallsLimited(stopping.most_seconds)
    try:
        with calls, callback_failures():
            if guide is None:
                beginning = suggested(start_key, choice_key, target, start, objective)
            else:
                check_support(support_key, guide, target)
                objective = SoftCVI() if objective is None else objective
                if starts > 1:
                    return fit_from_starts(
                        run_key, target, guide, starts, start, plan, objective
                    )
                beginning = placed(start_key, target, guide, start, objective)
    except CallbackFailure as failure:
        if guide is None:
            [choice, *_] = suggest(choice_key, NoStart().find(start_key, target))
            guide = choice.make()
        result = failed_start(target, guide, failure, not calls.has_ended_one)
        raise_if_failed([result], throw)
        return result
    seconds_start = time.perf_counter() - began

    # Chains and parts could exceed a limit that the user has set.
    is_free = guide is None and isinstance(stopping, Never)

    @functools.cache
    def by_parts() -> FitResult | None:
        if not (is_free and isinstance(start, Explore)) or host.checkpoint is not None:
            return None
        fit_one = functools.partial(
            fit,
            objective=objective,
            steps=steps,
            learning_rate=learning_rate,
            optimizer=optimizer,
            start=start,
            progress=False,
            throw=False,
        )
        return fitted_by_parts(
            host_fold_in(key, _PARTS), target, beginning.report, fit_one
        )

    answer = None if is_clear(beginning.report) else by_parts()
    if answer is None:
        with CallsLimited(stopping.most_seconds):
            answer = _first_trusted(run_key, beginning, plan)
        if guide is None and was_searched_untrained(answer):
            again_key = host_fold_in(key, _AGAIN)
            answer = _with_trained_model(again_key, answer, start, objective, plan)
        raise_if_failed([answer], throw)
        if is_free:
            answer = by_other_means(answer, by_parts)
    return answer.with_facts(seconds_start=seconds_start + answer.seconds_start)


def was_searched_untrained(result: Any) -> bool:
    """Whether the start was about a model whose parameters have since been trained.

    The guide then began in the wrong place, and the search says nothing of the answer.
    """
    if not isinstance(result, FitResult) or not result.steps:
        return False
    target, report = result.posterior.target, result.start
    is_trained = target is not None and bool(target.model_parameters())
    was_searched = report is not None and report.search is not None
    return (
        is_trained
        and was_searched
        and result.status == "finished"
        and not result.verdict.trusted
    )


def _with_trained_model(
    key: PRNGKeyArray,
    result: FitResult,
    start: AbstractStart,
    objective: AbstractObjective | None,
    plan: Plan,
) -> FitResult:
    """Start once more with the parameters that were trained; the better answer."""
    target = result.posterior.target
    assert target is not None  # it has parameters
    began = time.perf_counter()
    start_key, choice_key, run_key = host_split(key, 3)
    try:
        beginning = suggested(start_key, choice_key, target, start, objective)
        seconds_start = time.perf_counter() - began
        again = _first_trusted(run_key, beginning, plan)
    except KeyboardInterrupt:
        return interrupted(result, "before it was fitted with the trained model")
    return better_of(result, again.with_facts(seconds_start=seconds_start))


def _first_trusted(key: PRNGKeyArray, beginning: Beginning, plan: Plan) -> FitResult:
    """Train one guide after the other until none could be trusted more."""
    results: list[FitResult] = []
    words: list[str] = []
    for i, candidate in enumerate(beginning.candidates):
        steps, why_few = plan.steps, ""
        try:
            guide = candidate.make()
            if candidate.may_fit_already:
                steps, why_few = enough_steps(
                    guide, beginning.target, candidate.objective, steps
                )
            [result] = train(
                key if i == 0 else host_fold_in(key, i),
                beginning.target,
                guide,
                dataclasses.replace(plan, steps=steps),
                objective=candidate.objective,
                startup_steps=int(beginning.startup_share * plan.steps),
            )
        except KeyboardInterrupt:
            if not results:
                raise
            results[-1] = interrupted(results[-1], "before the next guide")
            break
        except ValueError as error:
            if not results:
                raise
            # An unusable guide must not discard the results of the others.
            message = f"{results[-1].message}; {candidate.words}: {first_line(error)}"
            results[-1] = results[-1].with_facts(message=message)
            continue
        if results and result.steps == 0:
            break  # a limit was reached before
        choices = {"start": beginning.words}
        if candidate.words:
            choices["guide"] = candidate.words
        if why_few:
            choices["steps"] = why_few
        result = dataclasses.replace(result, start=beginning.report, choices=choices)
        results.append(result)
        words.append(candidate.words)
        is_last = i == len(beginning.candidates) - 1
        if result.status == "interrupted" or is_last:
            break
        try:
            if result.verdict.trusted or result.verdict.is_about_model:
                break
        except KeyboardInterrupt:
            results[-1] = interrupted(result, "before its verdict")
            break
    if len(results) == 1:
        return results[0]
    best = max(range(len(results)), key=lambda i: results[i].rank)
    tried = "; ".join(
        f"{words[i]}: {results[i].verdict}" for i in range(len(results)) if i != best
    )
    return (
        results[best]
        .with_infinite_of(results)
        .with_facts(
            seconds_compile=sum(result.seconds_compile for result in results),
            seconds_run=sum(result.seconds_run for result in results),
            choices={**results[best].choices, "tried": tried},
        )
    )
