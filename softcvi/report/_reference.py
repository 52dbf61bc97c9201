"""A fit beside draws taken as the truth."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.guides import AbstractGuide
from softcvi.posterior import Posterior, load
from softcvi.posterior._storage import read
from softcvi.report._columns import Columns
from softcvi.targets import AbstractSpace, AbstractTarget, SpaceOfModel, Structure

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


POSTERIOR = "posterior.softcvi"


def needs_model(folder: str | os.PathLike, reference: Mapping[str, Any]) -> bool:
    """Whether coverage of reference draws needs the model that was fitted.

    Args:
        folder: The folder of a fit.
        reference: Named arrays with a leading axis of draws.

    Example:
        >>> needs_model("no-such-folder", {})
        False
    """
    path = Path(folder) / POSTERIOR
    if not path.exists():
        return False
    guide, space = _guide_and_space(path)
    return has_all_of(guide.structure, reference) and isinstance(space, SpaceOfModel)


def posterior_for(
    folder: Path, reference: Mapping[str, Any], target: AbstractTarget | None = None
) -> Posterior | None:
    """The posterior, if reference draws have a density under it."""
    path = folder / POSTERIOR
    if not path.exists():
        return None
    guide, space = _guide_and_space(path)
    if not has_all_of(guide.structure, reference):
        return None
    if not isinstance(space, SpaceOfModel):
        return load(path)
    return load(path, target)


def _guide_and_space(path: Path) -> tuple[AbstractGuide, AbstractSpace]:
    parts, _ = read(path)
    guide, space = parts.get("guide"), parts.get("space")
    if not isinstance(guide, AbstractGuide) or not isinstance(space, AbstractSpace):
        raise ValueError(
            f"{path}: holds no posterior: a guide and its space are missing. Fit it "
            "again with softcvi fit."
        )
    return guide, space
