"""``fit_many``: many fits in one compiled program."""

import functools
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.fitting._checks import (
    check_guide,
    check_steps,
    check_support,
    check_target,
)
from softcvi.fitting._drive import Outcome, drive
from softcvi.fitting._finish import make_result
from softcvi.fitting._loop import Run, advance_many, prepare
from softcvi.fitting._optimizer import as_optimizer
from softcvi.fitting._progress import AbstractReporter, as_reporter
from softcvi.fitting._result import FitError, FitResult
from softcvi.fitting._stopping import AbstractStoppingRule, Never
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI
from softcvi.starts._explore import MAX_NEWTON_DIM
from softcvi.starts._place import (
    STARTUP_SHARE,
    can_be_placed,
    place_by_newton,
    starting_rate,
)
from softcvi.targets import AbstractTarget


def fit_many(
    keys: PRNGKeyArray,
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
    description: str = "fits",
    throw: bool = False,
) -> list[FitResult]:
    """Fit once per key, all in one compiled program.

    With ``start=None`` a run draws the same numbers as ``fit`` with its key does.

    A run that fails (no finite label, not a number) keeps its last finite state and
    says so in its status; the others are not touched.

    Args:
        keys: Array of keys, one per run.
        target: The target; with ``batched_target`` its arrays have a leading axis of
            runs.
        guide: The guide; with ``batched_guide`` its arrays have a leading axis of runs.
        objective: ``SoftCVI()`` by default.
        steps: Optimisation steps.
        learning_rate: Peak rate; by default what suits the guide.
        optimizer: An optax transformation instead.
        start: ``"auto"`` or None.
        paths: Newton paths per run of an automatic start, of which the best counts.
        stopping: A rule; it sees the average over the runs.
        batched_target: Whether each run has its own target.
        batched_guide: Whether each run has its own starting guide.
        progress: Show a bar on a terminal; or a reporter.
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
    keys = _checked_keys(keys)
    check_steps(steps)
    objective = SoftCVI() if objective is None else objective
    stopping = Never() if stopping is None else stopping
    target_axis = eqx.if_array(0) if batched_target else None
    guide_axis = eqx.if_array(0) if batched_guide else None
    one_target = _first(target) if batched_target else target
    one_guide = _first(guide) if batched_guide else guide
    check_target(one_target, objective)
    check_guide(one_guide, one_target)
    check_support(keys[0], one_guide, one_target)
    as_optimizer(optimizer, learning_rate, 1.0)  # refuse a bad rate before any work
    steps = stopping.limit_steps(steps, objective.num_particles)

    began = time.perf_counter()
    start_keys, run_keys = _split_each(keys)
    startup_steps = 0 if start is None else int(STARTUP_SHARE * steps)
    choices = {"start": "the guide as given"}
    if start == "auto" and _newton_possible(one_guide, one_target):
        guide = eqx.filter_jit(
            eqx.filter_vmap(
                functools.partial(place_by_newton, paths=paths),
                in_axes=(0, guide_axis, target_axis),
            )
        )(start_keys, guide, target)
        guide_axis, startup_steps = eqx.if_array(0), 0
        choices = {"start": f"the best of {paths} Newton path(s)"}
    elif start == "auto":
        choices = {"start": "alpha by label ESS"}
    elif start is not None:
        raise ValueError("start: fit_many takes 'auto' or None.")
    seconds_start = time.perf_counter() - began

    placed = "Newton" in choices["start"]
    rate = starting_rate(_first(guide) if placed else one_guide, placed)
    optimizer = as_optimizer(optimizer, learning_rate, rate, one_guide.suggested_clip)
    setup = functools.partial(
        prepare,
        objective=objective,
        optimizer=optimizer,
        steps=steps,
        startup_steps=startup_steps,
    )
    state, run = eqx.filter_vmap(
        lambda k, g, t: setup(k, g, t), in_axes=(0, guide_axis, target_axis)
    )(run_keys, guide, target)
    axes = eqx.if_array(0)
    outcome = drive(
        lambda s, a, b: advance_many(s, a, b, run, axes),
        state,
        run,
        steps=steps,
        record_every=int(np.asarray(run.record_every)[0]),
        evaluations_per_step=objective.num_particles,
        stopping=stopping,
        reporter=as_reporter(progress),
        description=description,
    )
    results = [
        _one_result(outcome, run, i, choices, seconds_start) for i in range(len(keys))
    ]
    failed = [result for result in results if result.status == "failed"]
    if failed and throw:
        raise FitError(failed[0].message, failed[0]) from outcome.error
    return results


def _one_result(
    outcome: Outcome, run: Run, i: int, choices: dict[str, str], seconds_start: float
) -> FitResult:
    part: Outcome = eqx.tree_at(lambda o: o.state, outcome, _first(outcome.state, i))
    skipped = part.state.num_skipped(part.steps)
    if part.status == "finished" and skipped > 0.5 * max(part.steps, 1):
        message = (
            f"{skipped} of {part.steps} steps had no finite label or gradient; check "
            "the log density of this run"
        )
        part = eqx.tree_at(lambda o: (o.status, o.message), part, ("failed", message))
    return make_result(part, _first(run, i), dict(choices), seconds_start)


def _first(tree: PyTree, i: int = 0) -> PyTree:
    return jax.tree_util.tree_map(
        lambda leaf: leaf[i] if eqx.is_array(leaf) else leaf, tree
    )


def _newton_possible(guide: AbstractGuide, target: AbstractTarget) -> bool:
    return (
        target.has_gradient
        and not target.amortised
        and target.structure.size <= MAX_NEWTON_DIM
        and can_be_placed(guide)
    )


def _split_each(keys: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    # As in ``fit``, so that a run can be repeated alone with its key.
    parts = jax.vmap(lambda k: jax.random.split(k, 4))(keys)
    return parts[:, 0], parts[:, 3]


def _checked_keys(keys: Any) -> PRNGKeyArray:
    is_array = isinstance(keys, jax.Array)
    if is_array and keys.dtype == jnp.uint32 and keys.ndim == 2:
        keys = jax.random.wrap_key_data(keys)
    if not (
        is_array and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) and keys.ndim == 1
    ):
        raise TypeError(
            "keys: expected an array of keys, e.g. "
            "jax.random.split(jax.random.key(0), 10)."
        )
    return keys
