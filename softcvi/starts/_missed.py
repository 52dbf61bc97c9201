"""How much of the mass a search may have missed, by what it has found."""

import numpy as np

from softcvi.starts._importance import Fitted
from softcvi.starts._modes import Ends

# Distance in standard deviations, over that of a normal draw, within which the look
# around a wide place finds a narrow one.
_REACH = 3.0


def missing_mass(ends: Ends | None, fitted: Fitted | None, num_starts: int) -> float:
    """Estimated share of the mass in places that no start has led to.

    Args:
        ends: Where paths have ended.
        fitted: Moments of the places, if a mixture of them explains the posterior.
        num_starts: Number of starts.
    """
    if ends is None:
        return 0.0
    if fitted is None:
        return ends.unseen_mass()
    return max(ends.unseen_mass(), mass_like_missed(fitted, num_starts))


def mass_like_missed(fitted: Fitted, num_starts: int) -> float:
    """Mass of places so narrow that the starts would miss another like them.

    From far away every start leads to the widest place that it faces. A place which is
    narrower by a factor r is faced in a share r^(d - 1) of the directions. Where such
    places were found, by luck, there may be more.

    Args:
        fitted: Moments and evidence of the places.
        num_starts: Number of starts.
    """
    modes = [m for m in fitted.modes if m.log_evidence is not None]
    if len(modes) < 2:
        return 0.0
    mass = np.array([m.log_evidence for m in modes])
    mass = np.exp(mass - np.max(mass))
    mass = mass / np.sum(mass)
    means = np.stack([m.mean for m in modes])
    dim = means.shape[1]
    widths = np.array([0.5 * np.linalg.slogdet(m.dense)[1] / dim for m in modes])
    missed = 0.0
    for k, mode in enumerate(modes):
        others = [j for j in range(len(modes)) if widths[j] > widths[k]]
        apart = [j for j in others if not _is_within(mode.mean, modes[j])]
        if apart:
            narrower = float(widths[k] - np.max(widths[apart]))
            share = np.exp((dim - 1) * narrower)
            missed += float(mass[k] * (1 - share) ** num_starts)
    return missed / (1.0 + missed)


def _is_within(point: np.ndarray, mode) -> bool:
    centred = point - mode.mean
    square = centred @ np.linalg.solve(mode.dense, centred)
    return bool(square < _REACH**2 * len(point))
