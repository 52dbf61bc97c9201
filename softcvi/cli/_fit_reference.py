"""Reference draws of ``softcvi fit``, checked against the model before it is fitted."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from softcvi.cli._errors import CommandError
from softcvi.report import as_columns
from softcvi.targets import AbstractTarget

_SHOWN = 6
# What samplers, and our own draws.csv, write beside the parameters.
_BESIDE = ("chain", "draw", "iteration", "log_q", "log_weight", "lp")


def matched_reference(
    path: Path, draws: Mapping[str, np.ndarray], target: AbstractTarget, quiet: bool
) -> dict[str, np.ndarray]:
    """Those of the draws that are parameters of the model.

    Columns that are no parameters are left out as long as every parameter is there;
    otherwise one of them is likely a misspelt parameter.
    """
    shapes = _shapes(target)
    needed = _columns({n: s for n, s in shapes.items() if n in target.structure.names})
    given = [name for name, column in as_columns(draws).items() if _is_given(column)]
    known = {*_columns(shapes), *_BESIDE}
    unknown = [c for c in given if c not in known and not c.endswith("__")]
    missing = [column for column in needed if column not in given]
    if missing and (unknown or len(missing) == len(needed)):
        odd = f"{_listed(unknown)}: no such parameter. " if unknown else ""
        raise CommandError(
            f"--reference {path}: {odd}It has no {_listed(missing)}.\n"
            f"Name its columns as the model does: {_listed(needed)}."
        )
    if missing and not quiet:
        print(
            f"note: {path} has no {_listed(missing)}; without these there is no "
            "coverage",
            file=sys.stderr,
        )
    matched = {name: values for name, values in draws.items() if name in shapes}
    for name, values in matched.items():
        if values.dtype.kind not in "biuf":
            raise CommandError(f"--reference {path}: '{name}' holds text, not numbers.")
    return matched


def _shapes(target: AbstractTarget) -> dict[str, tuple[int, ...]]:
    """Shapes of everything that the draws of a fit will have."""
    described: dict[str, Any] = eqx.filter_eval_shape(
        lambda u: target.describe(target.space.to_model(u)), target.like
    )
    return {name: tuple(leaf.shape) for name, leaf in described.items()}


def _is_given(column: np.ndarray) -> bool:
    """Whether the file has it: ``theta[1]`` alone leaves a hole at ``theta[0]``."""
    return column.dtype.kind != "f" or not bool(np.all(np.isnan(column)))


def _columns(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    return list(as_columns({n: np.zeros((1, *shape)) for n, shape in shapes.items()}))


def _listed(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
