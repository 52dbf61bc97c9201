"""The stored posterior of a fit, read only where reference draws can use it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softcvi.posterior import Posterior, load
from softcvi.posterior._storage import read
from softcvi.report._reference import has_all_of
from softcvi.targets import AbstractTarget, SpaceOfModel

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
    parts, _ = read(path)
    covered = has_all_of(parts["guide"].structure, reference)
    return covered and isinstance(parts["space"], SpaceOfModel)


def posterior_for(
    folder: Path, reference: Mapping[str, Any], target: AbstractTarget | None = None
) -> Posterior | None:
    """The posterior, if reference draws have a density under it."""
    path = folder / POSTERIOR
    if not path.exists():
        return None
    parts, _ = read(path)
    if not has_all_of(parts["guide"].structure, reference):
        return None
    if not isinstance(parts["space"], SpaceOfModel):
        return load(path)
    return load(path, target)
