"""The rung for products of independent parts: each part is fitted by itself."""

import functools

from softcvi.fitting import fit
from softcvi.fitting._by_parts import fitted_by_parts, is_clear
from softcvi.ladder._base import AbstractRung, Attempt, LadderState

_NAME = "independent parts"


class ByParts(AbstractRung):
    """Each independent part of the posterior by itself, where there are several.

    At once where the start found more than one place, and otherwise as soon as a guide
    for the whole was not good enough.

    Example:
        >>> from softcvi.ladder import ByParts
        >>> rung = ByParts()
    """

    def attempt(self, state: LadderState) -> Attempt | None:
        tried = [attempt.name for attempt in state.attempts]
        if _NAME in tried or (not tried and is_clear(state.report)):
            return None
        fit_one = functools.partial(fit, steps=state.steps, progress=False, throw=False)
        result = fitted_by_parts(
            state.key, state.target.unwrapped, state.report, fit_one
        )
        return None if result is None else state.judged(_NAME, lambda: result)
