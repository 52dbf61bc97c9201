"""Where a fit begins: the guides to try, cheapest first, and how many steps each needs.

A guide that fits before it is trained needs few of them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi._compile import host_key
from softcvi.diagnostics import THRESHOLDS
from softcvi.fitting._history import History
from softcvi.fitting._interrupt import CallbackFailure, first_line
from softcvi.fitting._result import FitResult
from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI, TemperedProposal
from softcvi.posterior import Posterior
from softcvi.starts import (
    AbstractStart,
    Explore,
    InBestSpace,
    NoStart,
    StartReport,
    suggest,
)
from softcvi.starts._choose import STARTUP_SHARE, place
from softcvi.starts._precise import in_enough_precision
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A guide to try, at its start.

    Attributes:
        make: Makes the guide: one that is not tried costs nothing.
        objective: What to train it by.
        words: What it is and why it was chosen, for people; empty for the user's own.
        may_fit_already: Whether few steps are enough where its weights are even.
    """

    make: Callable[[], AbstractGuide]
    objective: AbstractObjective
    words: str = ""
    may_fit_already: bool = False


@dataclasses.dataclass(frozen=True)
class Beginning:
    """Everything that is known before the first step.

    Attributes:
        target: The target in the coordinates of the fit.
        candidates: Guides to try, cheapest first.
        startup_share: Share of the steps in which alpha follows label ESS.
        report: What the start found, if there was one.
        words: How the start was made, for people.
    """

    target: AbstractTarget
    candidates: tuple[Candidate, ...]
    startup_share: float
    report: StartReport | None
    words: str


def suggested(
    start_key: PRNGKeyArray,
    choice_key: PRNGKeyArray,
    target: AbstractTarget,
    start: AbstractStart,
    objective: AbstractObjective | None,
) -> Beginning:
    """Look for the posterior, and take the guides that the start suggests."""
    report = InBestSpace(start).find(start_key, target)
    candidates = tuple(
        Candidate(
            suggestion.make,
            objective
            or suggestion.objective
            or _objective_for(suggestion.is_flow, bool(report.modes)),
            suggestion.description,
            suggestion.may_fit_already,
        )
        for suggestion in suggest(choice_key, report)
    )
    share = 0.0 if report.modes else _startup_share(start)
    return Beginning(report.target, candidates, share, report, report.description)


def _objective_for(is_flow: bool, is_placed: bool) -> AbstractObjective:
    if is_flow or not is_placed:
        return SoftCVI()
    # The forward divergence: its optimum has the posterior's moments, which makes good
    # weights where the family is too small.
    return SoftCVI(16, TemperedProposal(1.0))


def placed(
    key: PRNGKeyArray,
    target: AbstractTarget,
    guide: AbstractGuide,
    start: AbstractStart,
    objective: AbstractObjective,
) -> Beginning:
    """Move the user's guide to where the posterior is, where its family knows how."""
    share = _startup_share(start)
    given = (Candidate(lambda: guide, objective),)
    is_auto = isinstance(start, Explore)
    if isinstance(start, NoStart) or (is_auto and not guide.can_be_matched):
        words = "the guide as given" + (", then alpha by label ESS" if is_auto else "")
        return Beginning(target, given, share, None, words)
    report = in_enough_precision(key, start.find(key, target))
    if not report.modes:
        return Beginning(target, given, share, report, report.description)
    moved = place(guide, report.modes[0].mean, report.modes[0].dense)
    if moved is None:
        raise ValueError(
            f"start: a {type(guide).__name__} of this kind cannot be moved to given "
            "moments. Use start='auto', or set its parameters yourself and start=None."
        )
    candidate = Candidate(lambda: moved, objective)
    return Beginning(report.target, (candidate,), 0.0, report, report.description)


def _startup_share(start: AbstractStart) -> float:
    return 0.0 if isinstance(start, NoStart) else STARTUP_SHARE


# Steps where the weights are even before training: a twentieth of the default, enough
# for the history to show that nothing changes.
_FEW = 500
_DRAWS = 1000
# Fewer steps and draws where a log density takes millions of operations.
_BUDGET = 3e10
_FEWEST, _FEWEST_DRAWS = 100, 250
# The verdict's threshold of even weights applies to each group of this many parameters.
_PART = 100
# Other draws than those that compare start and end, and than those of the verdict.
_SEED = 20_23


def enough_steps(
    guide: AbstractGuide,
    target: AbstractTarget,
    objective: AbstractObjective,
    steps: int,
) -> tuple[int, str]:
    """Number of steps that a placed guide needs, and the reason in words.

    With hundreds of parameters or many rows each step is expensive, and a posterior
    that is normal is known before the first one: importance weights of the guide as
    placed are even, for each hundred of its parameters. Weights correct what is left.

    Args:
        guide: The guide at its start.
        target: The posterior.
        objective: What it is trained by.
        steps: Steps that were asked for.

    Returns:
        Number of steps, and a reason; empty where all of them are needed.
    """
    # A target with mini-batches may have far more data than the steps would read.
    by_parts = target.draw_data(host_key(0)) is not None
    if steps <= _FEW or by_parts or not target.has_gradient:
        return steps, ""
    draws = affordable(target, _BUDGET, fewest=_FEWEST_DRAWS, most=_DRAWS)
    sample = Posterior(guide, target).importance(host_key(_SEED), draws)
    share = sample.ess / draws
    # Effective shares of independent groups multiply.
    even = THRESHOLDS.even_ess_share ** max(1.0, guide.structure.size / _PART)
    if not (sample.is_usable and share > even):
        return steps, ""
    few = affordable(
        target, _BUDGET, fewest=_FEWEST, most=_FEW, each=objective.num_evaluations
    )
    return few, f"{few} steps, as {share:.0%} of the draws carry weight before any"


def untrained(
    posterior: Posterior, status: str, message: str, **facts: Any
) -> FitResult:
    """A result with an empty history.

    Args:
        posterior: The guide as it is, and the target.
        status: How the fit ended.
        message: In words.
        **facts: Further fields of the result.
    """
    none = np.zeros(0)
    return FitResult(
        posterior=posterior,
        status=status,
        message=message,
        history=History(none, none, none, none),
        steps=0,
        num_particles=0,
        num_bad_densities=0,
        num_skipped_steps=0,
        seconds_start=0.0,
        seconds_compile=0.0,
        seconds_run=0.0,
        **facts,
    )


def failed_start(
    target: AbstractTarget,
    guide: AbstractGuide,
    failure: CallbackFailure,
    model_answers: bool = True,
) -> FitResult:
    """The result of a fit whose model failed before the first step.

    Args:
        target: The target.
        guide: The guide as it was before.
        failure: What the model raised.
        model_answers: Whether it came back by itself.
    """
    message = f"the model failed during the start: {first_line(failure)}"
    facts: dict[str, Any] = {"error": failure, "model_answers": model_answers}
    return untrained(Posterior(guide, target), "failed", message, **facts)
