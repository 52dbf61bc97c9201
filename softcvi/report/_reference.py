"""A fit beside draws taken as the truth."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from softcvi.report._columns import Columns
from softcvi.targets import Structure

_FAR, _NEAR = 0.5, 0.3
_WRONG_SPREAD, _DOUBTFUL_SPREAD = 2.0, 1.4


@dataclasses.dataclass(frozen=True)
class Shift:
    """Where a fit differs most from the reference.

    Args:
        level: The verdict that this alone would give.
        reason: Why, empty if there is nothing to say.
        name: The scalar that differs most.

    Example:
        >>> Shift("trusted").reason
        ''
    """

    level: str
    reason: str = ""
    name: str = ""


def worst_shift(ours: Columns, reference: Columns) -> Shift:
    """Compare means and spreads, scalar by scalar.

    A lost mode leaves k-hat small, since no draw ever sees it; the reference does.
    """
    names = [name for name in reference if name in ours]
    if not names:
        return Shift("trusted")
    spread = {n: max(float(np.std(reference[n])), 1e-12) for n in names}
    shift = {
        n: abs(np.mean(ours[n]) - np.mean(reference[n])) / spread[n] for n in names
    }
    ratio = {n: max(float(np.std(ours[n])), 1e-12) / spread[n] for n in names}
    moved = max(names, key=lambda n: shift[n])
    if shift[moved] > _NEAR:
        level = "not trusted" if shift[moved] > _FAR else "caution"
        return Shift(
            level,
            f"the mean of {moved} is {shift[moved]:.1f} standard deviations off the "
            "reference draws",
            moved,
        )
    wide = max(names, key=lambda n: abs(np.log(ratio[n])))
    factor = max(ratio[wide], 1 / ratio[wide])
    if factor > _DOUBTFUL_SPREAD:
        level = "not trusted" if factor > _WRONG_SPREAD else "caution"
        return Shift(
            level,
            f"the spread of {wide} is {ratio[wide]:.1f} times that of the reference "
            "draws",
            wide,
        )
    return Shift("trusted")


def has_all_of(structure: Structure, reference: Mapping[str, Any]) -> bool:
    """Whether reference draws are whole points of a posterior, which have a density."""
    return all(
        name in reference and np.shape(reference[name])[1:] == shape
        for name, shape in zip(structure.names, structure.shapes, strict=True)
    )


def worse(first: str, second: str) -> str:
    """The worse of two verdicts."""
    order = ("trusted", "caution", "not trusted")
    return max(first, second, key=order.index)
