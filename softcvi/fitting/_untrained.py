"""Results of fits without a single step."""

from typing import Any

import numpy as np

from softcvi.fitting._failure import CallbackFailure, first_line
from softcvi.fitting._history import History
from softcvi.fitting._result import FitResult
from softcvi.guides import AbstractGuide
from softcvi.posterior import Posterior
from softcvi.targets import AbstractTarget


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
    target: AbstractTarget, guide: AbstractGuide, failure: CallbackFailure
) -> FitResult:
    """The result of a fit whose model failed before the first step.

    Args:
        target: The target.
        guide: The guide as it was before.
        failure: What the model raised.
    """
    message = f"the model failed during the start: {first_line(failure)}"
    return untrained(Posterior(guide, target), "failed", message, error=failure)
