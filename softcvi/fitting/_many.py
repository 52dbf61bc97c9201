"""``fit_many``: many fits in one compiled program."""

import dataclasses
import functools
import os
import time
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Key, Shaped

from softcvi._compile import collected_rarely, full_precision, make_room
from softcvi.fitting._begin import failed_start, placed
from softcvi.fitting._cache import cache_by_default
from softcvi.fitting._checkpoint import Checkpoint, as_checkpoint
from softcvi.fitting._checks import (
    check_count,
    check_guide,
    check_support,
    check_target,
    checked_keys,
)
from softcvi.fitting._drive import Host
from softcvi.fitting._interrupt import CallbackFailure, callback_failures
from softcvi.fitting._loop import Batch
from softcvi.fitting._optimizer import as_optimizer
from softcvi.fitting._progress import AbstractReporter, as_reporter
from softcvi.fitting._result import FitResult
from softcvi.fitting._stopping import AbstractStoppingRule, Never
from softcvi.fitting._train import Plan, raise_if_failed, train
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI
from softcvi.starts import AbstractStart, Explore, NoStart, as_start
from softcvi.starts._choose import STARTUP_SHARE, place_by_newton
from softcvi.starts._explore import MAX_NEWTON_DIM
from softcvi.targets import AbstractTarget


@collected_rarely
@full_precision
def fit_many(
    keys: Shaped[Array, "runs *key"],
    target: AbstractTarget,
    guide: AbstractGuide,
    *,
    objective: AbstractObjective | None = None,
    steps: int = 10_000,
    learning_rate: float | None = None,
    optimizer: Any = None,
    start: Any = "auto",
    paths: int = 4,
    stopping: AbstractStoppingRule | None = None,
    batched_target: bool = False,
    batched_guide: bool = False,
    progress: bool | AbstractReporter = True,
    checkpoint: Checkpoint | str | os.PathLike | None = None,
    description: str = "fits",
    throw: bool = False,
) -> list[FitResult]:
    """Fit once per key, all in one compiled program.

    With ``start=None`` a run draws the same numbers as ``fit`` with its key does.

    A run that fails (no finite label, not a number) keeps its last finite state and
    says so in its status; the others are not touched. What the runs share is kept once,
    however many there are.

    Args:
        keys: Array of keys, one per run.
        target: The target; with ``batched_target`` its arrays have a leading axis of
            runs.
        guide: The guide; with ``batched_guide`` its arrays have a leading axis of runs.
            One program trains one family, so that it must be given here.
        objective: ``SoftCVI()`` by default.
        steps: Optimisation steps.
        learning_rate: Peak rate; by default what suits the guide.
        optimizer: An optax transformation instead.
        start: As for ``fit``. ``"auto"`` places each run by Newton paths of its own; a
            point, draws, a fitted posterior or the prior place all of them alike, so
            that target and guide must be the same for all.
        paths: Newton paths per run of an automatic start, of which the best counts.
        stopping: A rule; it sees the average over the runs.
        batched_target: Whether each run has its own target.
        batched_guide: Whether each run has its own starting guide.
        progress: Show a bar on a terminal; or a reporter.
        checkpoint: File to keep the state of all runs in, and to resume from.
        description: Shown with the progress.
        throw: Raise ``FitError`` for the first failed run.

    Returns:
        One result per key; ``seconds_run`` is the time of the whole program.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> results = softcvi.fit_many(keys, target, guide, steps=50, progress=False)
        >>> [result.status for result in results]
        ['finished', 'finished', 'finished']
    """
    cache_by_default()
    make_room()
    keys = checked_keys(keys)
    check_count("steps", steps)
    check_count("paths", paths)
    objective = SoftCVI() if objective is None else objective
    stopping = Never() if stopping is None else stopping
    batch = Batch(len(keys), batched_guide, batched_target)
    one_guide, one_target = batch.one(0, guide, target)
    check_target(one_target, objective)
    check_guide(one_guide, one_target)
    start = as_start(start, one_target)
    is_one_place = not isinstance(start, Explore | NoStart)
    if is_one_place and (batched_target or batched_guide):
        raise ValueError(
            "start: one place does not suit runs with a target or guide of their own; "
            "use 'auto' or None, or place the guides with guide.matched."
        )
    as_optimizer(optimizer, learning_rate, 1.0)  # refuse a bad rate before any work
    host = Host(stopping, as_reporter(progress), as_checkpoint(checkpoint), description)
    plan = Plan(steps, learning_rate, optimizer, host, throw)

    try:
        with callback_failures():
            check_support(keys[0], one_guide, one_target)
            results = begin_and_train(
                keys,
                target,
                guide,
                batch,
                plan,
                objective,
                start=start,
                paths=paths,
            )
    except CallbackFailure as failure:
        results = [
            failed_start(own_target, own_guide, failure)
            for own_guide, own_target in (
                batch.one(i, guide, target) for i in range(batch.runs)
            )
        ]
    raise_if_failed(results, throw)
    return results


def begin_and_train(
    keys: Key[Array, " runs"],
    target: AbstractTarget,
    guide: AbstractGuide,
    batch: Batch,
    plan: Plan,
    objective: AbstractObjective,
    *,
    start: AbstractStart,
    paths: int,
) -> list[FitResult]:
    """Place the guides of many runs, and train them.

    Args:
        keys: One per run.
        target: The target.
        guide: The guide.
        batch: What has a leading axis of runs.
        plan: What the user asked for.
        objective: The objective.
        start: The automatic one stands for Newton paths of each run's own.
        paths: How many these are.
    """
    began = time.perf_counter()
    # As in ``fit``, so that a run can be repeated alone with its key.
    parts = jax.vmap(lambda key: jax.random.split(key, 4))(keys)
    start_keys, run_keys = parts[:, 0], parts[:, 3]
    one_guide, one_target = batch.one(0, guide, target)
    report, startup_share = None, 0.0
    if not isinstance(start, Explore):
        beginning = placed(start_keys[0], target, guide, start, objective)
        guide, target = beginning.candidates[0].make(), beginning.target
        report, startup_share = beginning.report, beginning.startup_share
        words = beginning.words
    elif _can_be_placed(one_guide, one_target):
        guide = _placed_by_newton(start_keys, guide, target, paths, batch)
        batch = dataclasses.replace(batch, guide=True)
        words = f"the best of {paths} Newton path(s)"
    else:
        words, startup_share = "alpha by label ESS", STARTUP_SHARE
    seconds_start = time.perf_counter() - began
    results = train(
        run_keys,
        target,
        guide,
        plan,
        objective=objective,
        startup_steps=int(startup_share * plan.steps),
        batch=batch,
    )
    return [
        dataclasses.replace(
            result,
            start=report,
            choices={"start": words},
            seconds_start=seconds_start,
        )
        for result in results
    ]


@eqx.filter_jit
def _placed_by_newton(keys, guide, target, paths: int, batch: Batch) -> AbstractGuide:
    place = functools.partial(place_by_newton, paths=paths)
    return eqx.filter_vmap(place, in_axes=(0, *batch.axes()))(keys, guide, target)


def _can_be_placed(guide: AbstractGuide, target: AbstractTarget) -> bool:
    return (
        target.has_gradient
        and not target.amortised
        and target.structure.size <= MAX_NEWTON_DIM
        and guide.can_be_matched
    )
