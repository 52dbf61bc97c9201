"""Fits in folders: ``result.json`` and ``draws.csv``, from which a page can be made."""

import csv
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.diagnostics import summarise
from softcvi.report._stored import posterior_for
from softcvi.report._view import HISTORY, FitView
from softcvi.targets import AbstractTarget

RESULT, DRAWS, POSTERIOR = "result.json", "draws.csv", "posterior.softcvi"
_WEIGHT, _LOG_Q = "log_weight", "log_q"
_MOMENTS = ("mean", "sd")
_PLAIN = (
    "name", "method", "posterior", "status", "message", "level", "khat", "ess_share",
    "log_evidence", "num_particles", "steps", "seconds", "choices", "settings",
    "versions", "reference_log_prob", "mean_accuracy",
)  # fmt: skip


def as_json(view: FitView) -> dict[str, Any]:
    """A fit as JSON values: everything but its draws.

    Args:
        view: The fit.

    Example:
        >>> as_json(FitView.example())["khat"]
        0.21
    """
    facts: dict[str, Any] = {name: getattr(view, name) for name in _PLAIN}
    facts["reasons"] = list(view.reasons)
    facts["num_bad_densities"], facts["num_skipped_steps"] = view.num_bad
    facts["pair"] = None if view.pair is None else list(view.pair)
    facts["estimates"] = _estimates(view, None, "")
    if view.log_weights is not None:
        for name, more in _estimates(view, view.log_weights, "corrected_").items():
            facts["estimates"][name] |= more
    facts["history"] = {name: view.history[name].tolist() for name in HISTORY}
    return _finite(facts)


def _estimates(
    view: FitView, log_weights: np.ndarray | None, prefix: str
) -> dict[str, dict[str, float]]:
    return {
        str(row["name"]): {f"{prefix}{what}": float(row[what]) for what in _MOMENTS}
        for row in summarise(view.columns, log_weights)
    }


def save_fit(view: FitView, folder: str | os.PathLike) -> list[Path]:
    """Write ``result.json`` and ``draws.csv`` into a folder.

    Args:
        view: The fit.
        folder: Made if it does not exist.

    Returns:
        The files.

    Example:
        >>> import tempfile
        >>> [p.name for p in save_fit(FitView.example(), tempfile.mkdtemp())]
        ['result.json', 'draws.csv']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = list(view.columns)
    columns = [np.asarray(view.columns[name]) for name in names]
    for extra, values in ((_WEIGHT, view.log_weights), (_LOG_Q, view.log_q)):
        if values is not None:
            names, columns = [*names, extra], [*columns, values]
    _write(folder / RESULT, json.dumps(as_json(view), indent=1, allow_nan=False))
    rows = [",".join(_quoted(name) for name in names)]
    rows += [",".join(map(_digits, row)) for row in zip(*columns, strict=True)]
    _write(folder / DRAWS, "\n".join(rows) + "\n")
    return [folder / RESULT, folder / DRAWS]


def read_fit(
    folder: str | os.PathLike,
    reference: dict[str, np.ndarray] | None = None,
    find_target: Callable[[dict[str, Any]], AbstractTarget] | None = None,
) -> FitView:
    """Read a fit that ``softcvi fit`` or ``save_fit`` wrote.

    Args:
        folder: The folder.
        reference: Draws taken as the truth; coverage needs the stored posterior too.
        find_target: Makes the model from the fit's settings, for a posterior whose
            coordinates its model defines; called only if the reference needs it.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = save_fit(FitView.example(), folder)
        >>> read_fit(folder).khat
        0.21
    """
    folder = Path(folder)
    path = folder / RESULT
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder}: holds no {RESULT}. Give a folder that softcvi fit wrote."
        )
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        history = {n: np.array(facts["history"][n], float) for n in HISTORY}
        columns = _read_draws(folder / DRAWS)
        pair = facts.get("pair")
        view = FitView(
            **{name: facts[name] for name in _PLAIN},
            reasons=tuple(facts["reasons"]),
            history=history,
            log_weights=columns.pop(_WEIGHT, None),
            log_q=columns.pop(_LOG_Q, None),
            columns=columns,
            num_bad=(facts["num_bad_densities"], facts["num_skipped_steps"]),
            pair=None if pair is None else (pair[0], pair[1]),
            source=str(folder.resolve()),
        )
    except (KeyError, ValueError, TypeError, IndexError, StopIteration) as error:
        raise ValueError(
            f"{folder}: not a fit of this version, or damaged ({error}). "
            "Fit it again with softcvi fit."
        ) from error
    if reference is None:
        return view
    make = None if find_target is None else lambda: find_target(view.settings)
    posterior = posterior_for(folder / POSTERIOR, reference, make)
    return view.with_reference(reference, posterior)


def _read_draws(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as handle:
        names = next(csv.reader(handle))
        values = np.loadtxt(handle, delimiter=",", ndmin=2)
    return dict(zip(names, values.T, strict=True))


def _write(path: Path, text: str) -> None:
    """Replace a file only once the new one is whole."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def _digits(value: Any) -> str:
    return f"{float(value):.9g}"


def _finite(value: Any) -> Any:
    """JSON knows no infinity: what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
