"""The stored posterior of a fit, read only where reference draws can use it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from softcvi.posterior import Posterior, load
from softcvi.posterior._storage import read
from softcvi.report._reference import has_all_of
from softcvi.targets import AbstractTarget, SpaceOfModel


def posterior_for(
    path: Path,
    reference: Mapping[str, Any],
    find_target: Callable[[], AbstractTarget] | None = None,
) -> Posterior | None:
    """The posterior, if reference draws have a density under it.

    Args:
        path: The file that ``Posterior.save`` wrote.
        reference: Named arrays with a leading axis of draws.
        find_target: Makes the model again, which is slow and may fail; called only if
            the coordinates of the fit are defined by the model.

    Example:
        >>> posterior_for(Path("no-such-file"), {}) is None
        True
    """
    if not path.exists():
        return None
    parts, _ = read(path)
    if not has_all_of(parts["guide"].structure, reference):
        return None
    if find_target is None or not isinstance(parts["space"], SpaceOfModel):
        return load(path)
    return load(path, find_target())
