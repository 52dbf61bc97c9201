"""What a method hands back after it has been run on a zoo model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """Draws, and what the method says about itself.

    What a user does not wait for (k-hat of a method that does not report it, the
    density at the reference draws) is a function, called after the clock stopped.

    Attributes:
        draws: Draws in model coordinates by site.
        log_prob: Log density of the approximation for a batch of draws in model
            coordinates, or None for samplers.
        khat: Pareto k-hat of its importance weights, or None for samplers.
        trusted: What the method's own check says; None if it has none.
        verdict: The same in words.
        details: Anything else worth a record.
        uncorrected: Draws of the approximation itself, where ``draws`` were corrected
            by importance weights.

    Example:
        >>> Outcome({"x": np.zeros(3)}).trusted is None
        True
    """

    draws: Mapping[str, np.ndarray]
    log_prob: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = None
    khat: Callable[[], float] | None = None
    trusted: bool | None = None
    verdict: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    uncorrected: Callable[[], Mapping[str, np.ndarray]] | None = None


def pareto_khat(log_weights: np.ndarray) -> float:
    """Pareto k-hat of importance weights; infinite if a handful carry them all.

    Example:
        >>> pareto_khat(np.array([0.0] * 99 + [1e5]))
        inf
    """
    from softcvi.diagnostics import psis

    smoothed, khat = psis(log_weights)
    # With the rest underflowing there is no tail left to fit, and k-hat looks small.
    return khat if np.exp(2.0 * smoothed).sum() < 1.0 / 5.0 else float("inf")
