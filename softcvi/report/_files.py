"""Fits in folders: ``result.json`` and ``draws.csv``, from which a page can be made."""

import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from softcvi._atomic import write_text
from softcvi.diagnostics import summarise
from softcvi.report._reference import posterior_for
from softcvi.report._view import HISTORY, FitView
from softcvi.targets import AbstractTarget

RESULT, DRAWS = "result.json", "draws.csv"
# Columns that older versions wrote beside the parameters.
_OLD_COLUMNS = ("log_weight", "log_q")
_MOMENTS = ("mean", "sd")
_WORDS = ("reasons", "advice", "named")
# Arrays behind the charts of the checks.
_CHECKS = ("log_weights", "log_q")
_NUMBER = (int, float, type(None))
# What a record holds besides its arrays, and of which type.
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "method": str,
    "posterior": str,
    "status": str,
    "message": str,
    "level": str,
    "draws_are": str,
    "khat": _NUMBER,
    "ess_share": _NUMBER,
    "log_evidence": _NUMBER,
    "reference_log_prob": _NUMBER,
    "mean_accuracy": _NUMBER,
    "num_particles": int,
    "steps": int,
    "seconds": dict,
    "choices": dict,
    "settings": dict,
    "versions": dict,
}


def as_json(view: FitView) -> dict[str, Any]:
    """A fit as JSON values: everything but its draws.

    Args:
        view: The fit.

    Example:
        >>> as_json(FitView.example())["khat"]
        0.21
    """
    facts: dict[str, Any] = {name: getattr(view, name) for name in _PLAIN}
    for name in _WORDS:
        facts[name] = list(getattr(view, name))
    facts["num_bad_densities"], facts["num_skipped_steps"] = view.num_bad
    facts["pair"] = None if view.pair is None else list(view.pair)
    facts["estimates"] = {
        str(row["name"]): {what: float(row[what]) for what in _MOMENTS}
        for row in summarise(view.columns)
    }
    facts["history"] = {name: view.history[name].tolist() for name in HISTORY}
    for name in _CHECKS:
        values = getattr(view, name)
        facts[name] = None if values is None else _rounded(values)
    return _finite(facts)


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.9g}") for value in values]


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
    record = json.dumps(as_json(view), indent=1, allow_nan=False)
    write_text(folder / DRAWS, _as_csv(view.columns))
    # Last: a folder with a record is complete.
    write_text(folder / RESULT, record)
    return [folder / RESULT, folder / DRAWS]


def read_fit(
    folder: str | os.PathLike,
    reference: dict[str, np.ndarray] | None = None,
    target: AbstractTarget | None = None,
) -> FitView:
    """Read a fit that ``softcvi fit`` or ``save_fit`` wrote; runs no code from there.

    Args:
        folder: The folder.
        reference: Draws taken as the truth; coverage needs the stored posterior too.
        target: The model that was fitted, for a posterior whose coordinates its model
            defines (``needs_model``).

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
        view = _view(folder, json.loads(path.read_text(encoding="utf-8")))
    except Exception as error:
        # A damaged file fails in many ways: RecursionError, csv.Error, KeyError...
        raise ValueError(
            f"{folder}: not a fit of this version, or damaged "
            f"({type(error).__name__}: {error}). Fit it again with softcvi fit."
        ) from error
    if reference is None:
        return view
    return view.with_reference(reference, posterior_for(folder, reference, target))


def _view(folder: Path, facts: dict[str, Any]) -> FitView:
    columns = _read_draws(folder / DRAWS)
    # A column of that name is a parameter, where the record has the checks itself.
    older = [
        None if check in facts else columns.pop(name, None)
        for check, name in zip(_CHECKS, _OLD_COLUMNS, strict=True)
    ]
    checks: dict[str, Any] = {
        name: old if facts.get(name) is None else _draws_of(_curve(facts[name]))
        for name, old in zip(_CHECKS, older, strict=True)
    }
    # Versions before this one had no words on where draws come from.
    plain: dict[str, Any] = {"draws_are": "", **facts}
    plain = {name: plain[name] for name in _PLAIN}
    words: dict[str, Any] = {
        name: tuple(map(str, facts.get(name, ()))) for name in _WORDS
    }
    for name, kind in _PLAIN.items():
        if not isinstance(plain[name], kind):
            raise TypeError(f"{name} is {plain[name]!r:.50}")
        if kind in (int, _NUMBER) and plain[name] is not None:
            float(plain[name])  # a whole number can be too large to show
    plain["seconds"] = {k: float(v) for k, v in plain["seconds"].items()}
    # Half of a pair of characters is valid in JSON, and cannot be written to a page.
    json.dumps(facts, ensure_ascii=False).encode()
    pair = facts.get("pair")
    return FitView(
        **plain,
        **checks,
        **words,
        history={n: _curve(facts["history"][n]) for n in HISTORY},
        columns=columns,
        num_bad=(int(facts["num_bad_densities"]), int(facts["num_skipped_steps"])),
        pair=None if pair is None else (str(pair[0]), str(pair[1])),
        source=str(folder.resolve()),
    )


def _curve(values: Any) -> np.ndarray:
    array = np.array(values, float)
    if array.ndim != 1:
        raise ValueError(f"expected a list of numbers; got {values!r:.50}")
    return array


def _draws_of(values: np.ndarray) -> np.ndarray:
    """Logarithms by draw; JSON has no minus infinity, which is written as null."""
    if not values.size:
        raise ValueError("no draws")
    return np.where(np.isnan(values), -np.inf, values)


def _read_draws(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():  # opening a pipe would wait for ever
        raise FileNotFoundError(f"no file {path.name}")
    with path.open(newline="", encoding="utf-8") as handle:
        names = next(csv.reader(handle))
        if len(set(names)) < len(names):
            raise ValueError(f"two columns of {path.name} have one name")
        values = np.loadtxt(handle, delimiter=",", ndmin=2)
    return dict(zip(names, values.T, strict=True))


def _as_csv(columns: dict[str, np.ndarray]) -> str:
    header, text = io.StringIO(), io.StringIO()
    # A return in a name is quoted only where it is part of the ends of lines.
    csv.writer(header, lineterminator="\r\n").writerow(columns)
    text.write(header.getvalue().removesuffix("\r\n") + "\n")
    writer = csv.writer(text, lineterminator="\n")
    rows = zip(*(np.asarray(column) for column in columns.values()), strict=True)
    writer.writerows([f"{float(value):.9g}" for value in row] for row in rows)
    return text.getvalue()


def _finite(value: Any) -> Any:
    """JSON knows no infinity: what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
