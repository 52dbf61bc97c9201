"""The first rungs: the simple guides that the start suggests, trained or as placed."""

import dataclasses
import functools

import equinox as eqx

from softcvi.fitting import FitResult, TimeLimit, fit
from softcvi.fitting._begin import enough_steps, untrained
from softcvi.ladder._base import AbstractRung, Attempt, LadderState
from softcvi.objectives import SoftCVI, TemperedProposal
from softcvi.posterior import Posterior
from softcvi.starts import Suggestion

_LEAST_SECONDS = 1.0


class Simple(AbstractRung):
    """A normal or a t on what the start found, corrected by weights.

    With several modes a mixture of them; without a gradient or moments whatever the
    start suggests. Guides that are flows are left to later rungs.

    Args:
        number: Which of the suggested guides, counted from the cheapest.

    Example:
        >>> from softcvi.ladder import Simple
        >>> rung = Simple()
    """

    number: int = eqx.field(static=True, default=0)

    def attempt(self, state: LadderState) -> Attempt | None:
        simple = simple_suggestions(state)
        if self.number >= len(simple):
            return None
        choice = simple[self.number]
        return state.judged(choice.name, functools.partial(_fit, state, choice))

    def further(self, attempt: Attempt) -> "Simple":
        return Simple(self.number + 1)


class AsPlaced(AbstractRung):
    """The first simple guide where the start put it, without training.

    The start's own moments are wider than the best fit of a family that is too small:
    sometimes they have the better weights, and they cost next to nothing.

    Example:
        >>> from softcvi.ladder import AsPlaced
        >>> rung = AsPlaced()
    """

    def attempt(self, state: LadderState) -> Attempt | None:
        simple = simple_suggestions(state)
        if not simple or not state.report.modes:
            return None
        choice = simple[0]
        result = untrained(
            Posterior(choice.guide, state.target),
            "finished",
            "the guide as the start placed it, not trained",
            choices=_choices(state, choice),
            uses_labels=False,
            start=state.report,
        )
        return state.judged(f"{choice.name}, as placed", lambda: result)


def simple_suggestions(state: LadderState) -> list[Suggestion]:
    """The suggested guides that are not flows; the first one if all are."""
    simple = [choice for choice in state.suggestions if not choice.is_flow]
    return simple or list(state.suggestions[:1])


def _fit(state: LadderState, choice: Suggestion) -> FitResult:
    is_placed = bool(state.report.modes)
    # The forward divergence: its optimum has the posterior's moments, which makes good
    # weights where the family is too small.
    forward = SoftCVI(16, TemperedProposal(1.0))
    objective = choice.objective or forward
    steps, why_few = state.steps, ""
    if choice.may_fit_already:
        steps, why_few = enough_steps(choice.guide, state.target, objective, steps)
    result = fit(
        state.key,
        state.target,
        choice.guide,
        objective=objective,
        steps=steps,
        # Without moments the start is the first part of the fit.
        start=None if is_placed else "auto",
        stopping=TimeLimit(max(state.seconds_left, _LEAST_SECONDS)),
        progress=state.reporter,
        checkpoint=state.checkpoint,
    )
    choices = _choices(state, choice)
    if why_few:
        choices["steps"] = why_few
    return dataclasses.replace(result, choices=choices, start=state.report)


def _choices(state: LadderState, choice: Suggestion) -> dict[str, str]:
    return {"start": state.report.description, "guide": choice.description}
