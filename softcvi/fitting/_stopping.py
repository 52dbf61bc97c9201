"""Stopping rules: objects that the host asks between chunks."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import numpy as np

from softcvi.fitting._history import History


class Progress(eqx.Module):
    """How far a fit is.

    Attributes:
        step: Steps done.
        total_steps: Steps planned.
        seconds: Wall time since the loop began.
        evaluations: Evaluations of the model's log density so far.
        history: The history up to now.

    Example:
        >>> import softcvi
        >>> class HalfWay(softcvi.fitting.AbstractStoppingRule):
        ...     def reason(self, progress: softcvi.fitting.Progress):
        ...         half = progress.step >= progress.total_steps / 2
        ...         return "half of the steps are done" if half else None
    """

    step: int
    total_steps: int
    seconds: float
    evaluations: int
    history: History


class AbstractStoppingRule(eqx.Module):
    """Decides between chunks whether a fit has gone far enough.

    A rule is asked at the same steps in equal runs, so that they stop at the same one.

    Attributes:
        follows_clock: Whether the rule looks at the time: it is then asked at every
            opportunity, even while the model is being evaluated.

    Example:
        >>> import softcvi
        >>> class ExcessBelow(softcvi.fitting.AbstractStoppingRule):
        ...     limit: float = 0.01
        ...
        ...     def reason(self, progress):
        ...         excess = progress.history.last()["excess"]
        ...         return "excess is small" if excess < self.limit else None
        >>> ExcessBelow().limit
        0.01
    """

    follows_clock: ClassVar[bool] = False

    @abstractmethod
    def reason(self, progress: Progress) -> str | None:
        """Why to stop now, in words, or None to go on."""

    def limit_steps(self, steps: int, evaluations_per_step: int) -> int:
        """Steps to plan for, where the rule knows ahead how many there can be."""
        return steps

    @property
    def most_seconds(self) -> float | None:
        """Seconds that the steps may take in all; None if that is not limited."""
        return None


class Never(AbstractStoppingRule):
    """Run all steps.

    Example:
        >>> import softcvi
        >>> rule = softcvi.fitting.Never()
    """

    follows_clock: ClassVar[bool] = True  # no need to be asked at fixed steps

    def reason(self, progress: Progress) -> str | None:
        return None


class Plateau(AbstractStoppingRule):
    """Stop when excess no longer falls by more than its own noise.

    Compares two successive windows of the history: stops once the later mean is not
    below the earlier one by more than ``threshold`` standard errors.

    Args:
        window: Share of the planned steps in each window.
        threshold: Standard errors that count as progress.
        tolerance: An excess below this many nats is as good as none.

    Example:
        >>> import softcvi
        >>> rule = softcvi.fitting.Plateau(window=0.1)
    """

    window: float = 0.1
    threshold: float = 1.0
    tolerance: float = 1e-4

    def __check_init__(self):
        if not 0 < self.window < 0.5:
            raise ValueError(f"window: must lie in (0, 0.5); got {self.window}.")

    def reason(self, progress: Progress) -> str | None:
        steps, excess = progress.history.step, progress.history.excess
        span = self.window * progress.total_steps
        late = excess[steps > progress.step - span]
        early = excess[
            (steps <= progress.step - span) & (steps > progress.step - 2 * span)
        ]
        late, early = late[np.isfinite(late)], early[np.isfinite(early)]
        if min(late.size, early.size) < 8:
            return None
        error = np.sqrt(late.var() / late.size + early.var() / early.size)
        falling = early.mean() - late.mean() > self.threshold * error
        if falling and late.mean() > self.tolerance:
            return None
        return f"excess has settled at {late.mean():.3g}"


class TimeLimit(AbstractStoppingRule):
    """Stop after a wall time, compilation not counted.

    Steps that take much longer than those before (a model that hangs) are given up. So
    is one call of a model outside of JAX, at any time of a fit, that takes longer than
    the limit, or than thirty seconds if the limit is shorter.

    Args:
        seconds: The limit.

    Example:
        >>> import softcvi
        >>> rule = softcvi.fitting.TimeLimit(30.0)
    """

    follows_clock: ClassVar[bool] = True

    seconds: float

    def __check_init__(self):
        if not self.seconds > 0:
            raise ValueError(f"seconds: must be positive; got {self.seconds}.")

    def reason(self, progress: Progress) -> str | None:
        if progress.seconds < self.seconds:
            return None
        return f"the time limit of {self.seconds:g} s is reached"

    @property
    def most_seconds(self) -> float:
        return self.seconds


class EvaluationLimit(AbstractStoppingRule):
    """Stop after a number of evaluations of the model's log density.

    Args:
        evaluations: The limit.

    Example:
        >>> import softcvi
        >>> rule = softcvi.fitting.EvaluationLimit(100_000)
    """

    evaluations: int

    def __check_init__(self):
        if not self.evaluations > 0:
            raise ValueError(f"evaluations: must be positive; got {self.evaluations}.")

    def reason(self, progress: Progress) -> str | None:
        if progress.evaluations < self.evaluations:
            return None
        return f"the limit of {self.evaluations} evaluations is reached"

    def limit_steps(self, steps: int, evaluations_per_step: int) -> int:
        return max(1, min(steps, self.evaluations // evaluations_per_step))
