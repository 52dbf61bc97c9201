"""Where a fit begins: the guides to try, each at its start, cheapest first."""

import dataclasses
from collections.abc import Callable

from jaxtyping import PRNGKeyArray

from softcvi.guides import AbstractGuide
from softcvi.objectives import AbstractObjective, SoftCVI, TemperedProposal
from softcvi.starts import (
    AbstractStart,
    Explore,
    InBestSpace,
    NoStart,
    StartReport,
    suggest,
)
from softcvi.starts._place import STARTUP_SHARE, place
from softcvi.starts._precise import in_enough_precision
from softcvi.targets import AbstractTarget


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
