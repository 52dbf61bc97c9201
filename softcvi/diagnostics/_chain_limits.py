"""Where averages over short chains go, from how much they have forgotten."""

import dataclasses

import numpy as np

# A memory that is nearly complete says nothing about where the chains would end.
_LARGEST_MEMORY = 0.95


@dataclasses.dataclass(frozen=True)
class Limit:
    """Where the average of each chain goes, and the memory of its start."""

    each: np.ndarray
    memory: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The mean over chains."""
        return self.each.mean(axis=0)

    @property
    def error(self) -> np.ndarray:
        """Its standard error."""
        return self.each.std(axis=0) / np.sqrt(len(self.each))


# Chains of improper posteriors have no bounds.
@np.errstate(invalid="ignore", over="ignore")
def limit_of(later: np.ndarray, start: np.ndarray, modes: np.ndarray) -> Limit:
    """Where averages over chains go, from how much they have forgotten of their start.

    If what is left of the start's departure is the share ``memory``, the mean of
    ``later - memory * start`` is ``1 - memory`` times the mean in the long run.

    Args:
        later: Average over each chain.
        start: Where it started.
        modes: Number of the mode that it stays in, whose mean departures are from.
    """
    counts = np.bincount(modes)[:, None]
    centres = [
        np.stack([np.bincount(modes, column) for column in x.T], axis=1) / counts
        for x in (start, later)
    ]
    centred = start - centres[0][modes]
    variance = np.mean(centred**2, axis=0)
    covariance = np.mean(centred * (later - centres[1][modes]), axis=0)
    memory = covariance / np.where(variance > 0, variance, np.inf)
    memory = np.clip(memory, 0.0, _LARGEST_MEMORY)
    return Limit((later - memory * start) / (1 - memory), memory)


def spread_of(
    first: Limit, second: Limit, own: np.ndarray, errors: float
) -> np.ndarray:
    """Variances that chains go to; zero where they have none.

    What chains that remember their start go to is known so badly that a variance can
    come out negative. Where it could as well be the answer's own, the chains say
    nothing about it, and the answer's own is given back.

    Args:
        first: Where the means go.
        second: Where the means of squares go.
        own: Variances of the answer.
        errors: Standard errors that a value may be off by.
    """
    variance = second.value - first.value**2
    error = np.hypot(second.error, 2 * first.value * first.error)
    is_unknown = (variance <= 0) & (variance + errors * error >= own)
    return np.where(is_unknown, own, np.where(variance > 0, variance, 0.0))
