"""A rung of many short chains from the draws of the best guide so far."""

import dataclasses

from softcvi.fitting._correct import corrected
from softcvi.ladder._base import AbstractRung, Attempt, LadderState


class ShortChains(AbstractRung):
    """Hamiltonian chains that begin at draws of the best guide, as in ``fit``.

    Many of them side by side in the space that the guide has whitened: where the guide
    is near the posterior they take a second or two. Not with several modes, whose
    masses chains do not tell, and only for targets with a gradient.

    Example:
        >>> from softcvi.ladder import ShortChains
        >>> rung = ShortChains()
    """

    def attempt(self, state: LadderState) -> Attempt | None:
        best = state.best_fit
        if best is None:
            return None
        answer = corrected(best)
        if answer is best:
            return None
        # The time of the guide is that of its own attempt.
        seconds = answer.seconds_run - best.seconds_run
        answer = answer.with_facts(seconds_compile=0.0, seconds_run=seconds)
        attempt = state.judged("short chains", lambda: answer)
        return dataclasses.replace(attempt, seconds=seconds)
