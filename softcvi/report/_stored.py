"""The stored posterior of a fit, read only where reference draws can use it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softcvi.guides import AbstractGuide
from softcvi.posterior import Posterior, load
from softcvi.posterior._storage import read
from softcvi.report._reference import has_all_of
from softcvi.targets import AbstractSpace, AbstractTarget, SpaceOfModel

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
