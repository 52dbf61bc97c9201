"""``fit_until``: a ladder of guides and chains up to an answer that can be trusted."""

import os
import time
from collections.abc import Callable

from jaxtyping import PRNGKeyArray

from softcvi._compile import collected_rarely, full_precision, host_fold_in, host_split
from softcvi.fitting import AbstractReporter, Checkpoint, FitError, as_reporter
from softcvi.fitting._begin import failed_start
from softcvi.fitting._cache import cache_by_default
from softcvi.fitting._checkpoint import CheckpointError, as_checkpoint
from softcvi.fitting._checks import check_count, check_target, checked_key
from softcvi.fitting._fit import was_searched_untrained
from softcvi.fitting._interrupt import CallbackFailure, callback_failures
from softcvi.fitting._stuck import CallsLimited
from softcvi.ladder._base import INTERRUPTED, AbstractRung, Attempt, LadderState
from softcvi.ladder._chains import Chains, ShortChains
from softcvi.ladder._flow import Flow
from softcvi.ladder._normal import AsPlaced, Simple
from softcvi.ladder._parts import ByParts
from softcvi.ladder._result import LadderResult
from softcvi.objectives import SoftCVI
from softcvi.starts import Explore, InBestSpace, NoStart, suggest
from softcvi.targets import AbstractTarget

# Number of the key of further searches, and the most searches for one posterior.
_AGAIN, _MOST_SEARCHES = 1_000, 4

DEFAULT_RUNGS: tuple[AbstractRung, ...] = (
    ByParts(),
    Simple(),
    AsPlaced(),
    ByParts(),
    Flow(),
    ShortChains(),
    Flow("deeper spline flow", layers=8, width=64, particles=32, factor=2),
    Chains(),
)


@collected_rarely
@full_precision
def fit_until(
    key: PRNGKeyArray,
    target: AbstractTarget,
    khat: float = 0.7,
    budget: float = 600.0,
    *,
    steps: int = 10_000,
    rungs: tuple[AbstractRung, ...] = DEFAULT_RUNGS,
    progress: bool | AbstractReporter = True,
    checkpoint: Checkpoint | str | os.PathLike | None = None,
) -> LadderResult:
    """Try richer and richer guides, then chains, until the answer is trusted.

    ``fit`` stops after the guides that the start suggests; ``fit_until`` goes on to
    deeper flows and Markov chains until an answer is trusted or the budget is spent.

    The rungs: each independent part by itself, where the log density is a sum of such
    and the start or a guide of the whole calls for it; a normal, or a Student's t where
    the start finds heavy tails or skewness (with several modes a mixture), trained and
    as placed; a spline flow on the space whitened by it, with up to 16 parameters; many
    short chains from the draws of the best of these; a deeper flow; and at last NUTS in
    the whitened space, as long as there is time. The answer is the first that is
    accepted, or the best. A rung that fails (a missing package, an exception, no
    memory) is recorded and does not lose what the others have reached. Where a rung has
    trained parameters of the model and is not trusted, the start looks again, and the
    rung is tried once more.

    Args:
        key: Random key.
        target: The posterior.
        khat: k-hat that an accepted guide must stay below; it must be trusted besides.
        budget: Seconds after which no further rung is begun. One call of a model
            outside of JAX that takes longer (or thirty seconds, if that is more) is
            ended.
        steps: Optimisation steps of the first rung; later ones take as many or more.
        rungs: What to try, in order; see ``softcvi.ladder.AbstractRung``.
        progress: Show progress on a terminal; or a reporter.
        checkpoint: File to keep the state of every guide in. The same call continues
            from it: guides that were trained are not trained again, and the answer is
            the same. The start, verdicts and chains are made again; the budget begins
            anew.

    Returns:
        The answer with every attempt, whether trusted or not.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> answer = softcvi.fit_until(
        ...     jax.random.key(0), target, steps=200, progress=False
        ... )
        >>> answer.attempts[0].verdict.trusted
        True
    """
    cache_by_default()
    key = checked_key(key)
    check_count("steps", steps)
    check_target(target, SoftCVI())
    if not 0 < khat <= 1:
        raise ValueError(f"khat: must lie in (0, 1]; got {khat}.")
    if not budget > 0:
        raise ValueError(f"budget: must be a positive number of seconds; got {budget}.")
    if not rungs:
        raise ValueError("rungs: give at least one, e.g. softcvi.ladder.DEFAULT_RUNGS.")
    began = time.perf_counter()
    start_key, choice_key, rung_key = host_split(key, 3)
    calls = CallsLimited(budget)
    try:
        with calls, callback_failures():
            report = InBestSpace(Explore()).find(start_key, target)
    except CallbackFailure as failure:
        [choice, *_] = suggest(choice_key, NoStart().find(start_key, target))
        result = failed_start(target, choice.make(), failure, not calls.has_ended_one)
        raise FitError(result.message, result) from failure
    state = LadderState(
        key=rung_key,
        target=report.target,
        report=report,
        suggestions=suggest(choice_key, report),
        khat=khat,
        steps=steps,
        reporter=as_reporter(progress),
        ends=began + budget,
        checkpoint=as_checkpoint(checkpoint),
    )
    answer = LadderResult(state.attempts, report, time.perf_counter() - began)
    with CallsLimited(budget):
        _try_all(rungs, state)
    if all(attempt.answer is None for attempt in state.attempts):
        raise _nothing_reached(state.attempts)
    return answer


def _try_all(rungs: tuple[AbstractRung, ...], state: LadderState) -> None:
    searches = 1
    for first in rungs:
        rung: AbstractRung | None = first
        while rung is not None:
            if state.attempts and state.seconds_left <= 0:
                return
            attempt = _try(rung, state.for_attempt(len(state.attempts)))
            if attempt is None:
                break
            state.attempts.append(attempt)
            if attempt.answer is not None and state.target.model_parameters():
                # Later rungs build on the model parameters that this one has trained.
                state.target = attempt.answer.posterior.target or state.target
            is_about_model = bool(attempt.verdict and attempt.verdict.is_about_model)
            if attempt.accepted or attempt.interrupted or is_about_model:
                return
            if searches < _MOST_SEARCHES and was_searched_untrained(attempt.answer):
                searches += 1
                failed = _recorded("search with the trained model", _search, state)
                if failed is None:
                    rung = first
                    continue
                state.attempts.append(failed)
                if failed.interrupted:
                    return
            rung = None if attempt.answer is None else rung.further(attempt)


def _search(state: LadderState) -> None:
    """Look again where the posterior is, with what the model has been trained to."""
    key = host_fold_in(state.key, _AGAIN + len(state.attempts))
    start_key, choice_key = host_split(key, 2)
    report = InBestSpace(Explore()).find(start_key, state.target)
    state.suggestions = suggest(choice_key, report)
    state.report, state.target = report, report.target


def _try(rung: AbstractRung, state: LadderState) -> Attempt | None:
    return _recorded(type(rung).__name__, rung.attempt, state)


def _recorded(
    name: str,
    attempt: Callable[[LadderState], Attempt | None],
    state: LadderState,
) -> Attempt | None:
    """An attempt, whose failure does not lose what others have reached."""
    began = time.perf_counter()
    try:
        return attempt(state)
    except CheckpointError:
        raise  # a file that must not be written over
    except KeyboardInterrupt:
        if not any(attempt.answer for attempt in state.attempts):
            raise
        seconds = time.perf_counter() - began
        return Attempt(name, seconds, failure=INTERRUPTED)
    except Exception as error:
        # Whatever it is: earlier answers must not be lost to it.
        lines = str(error).strip().splitlines()
        words = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
        seconds = time.perf_counter() - began
        return Attempt(name, seconds, failure=words, error=error)


def _nothing_reached(attempts: list[Attempt]) -> Exception:
    for attempt in attempts:
        if attempt.error is not None:
            return attempt.error
    return ValueError(
        "rungs: none of them applies to this target; give softcvi.ladder.DEFAULT_RUNGS."
    )
