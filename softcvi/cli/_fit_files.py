"""Files of a fit: its folder before and after, and reference draws."""

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

import softcvi
from softcvi._atomic import atomic_write, remove_abandoned
from softcvi.cli._errors import CommandError
from softcvi.cli._terminal import tell
from softcvi.report import FitView, as_columns, save_fit, write_report
from softcvi.targets import AbstractTarget

CHECKPOINT = "checkpoint.npz"
RESULT = "result.json"
POSTERIOR, NETCDF, PAGE = "posterior.softcvi", "draws.nc", "report.html"
FILES = (CHECKPOINT, RESULT, "draws.csv", POSTERIOR, NETCDF, PAGE)
# What the record leaves out if it was not given.
_DEFAULTS = {"alpha": 0.75, "kind": "auto", "particles": 8}
# File names may change; what is in them may not.
_NOT_COMPARED = ("data",)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, by trying it."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out {folder}: is a file. Give a folder.")
    places = (folder, *folder.absolute().parents)
    place = next(place for place in places if place.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(
            f"--out {folder}: cannot be written ({why}). Give another folder."
        ) from error


def check_empty_or_meant(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse to write over a fit by accident."""
    taken = (folder / CHECKPOINT).exists() or (folder / RESULT).exists()
    if resume and not taken:
        raise CommandError(
            f"--resume: nothing to go on from in {folder}. Check --out, or leave out "
            "--resume."
        )
    if taken and not resume and not overwrite:
        raise CommandError(
            f"--out {folder}: holds a fit. Give --resume to go on, --overwrite to "
            "replace it, or another folder."
        )


def read_record(folder: Path) -> dict[str, Any]:
    """The record of the fit in a folder; empty without one."""
    path = folder / RESULT
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not isinstance(
            record.get("settings", {}), dict
        ):
            raise ValueError("not a record of a fit")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise CommandError(
            f"{path}: not readable ({type(error).__name__}: {error}). Give --overwrite "
            "to replace the fit, or another --out."
        ) from error
    return record


def clear_folder(folder: Path) -> None:
    """Remove the record of the fit in a folder, before another one replaces it."""
    for name in (CHECKPOINT, RESULT):
        (folder / name).unlink(missing_ok=True)


def is_finished(folder: Path) -> bool:
    """Whether the fit in a folder has done all its steps."""
    finished = read_record(folder).get("status") == "finished"
    return finished and not (folder / CHECKPOINT).exists()


def fingerprints(model: Path, name: str, data: Path | None) -> dict[str, Any]:
    """Which files a fit read, and what was in them."""
    facts = {"model": f"{model.name}:{name}"}
    if data is not None:
        facts |= {"data": data.name, "data sha256": file_digest(data)}
    return {**facts, "model sha256": file_digest(model)}


@dataclasses.dataclass(frozen=True)
class Written:
    """What a fit left behind.

    Attributes:
        files: The files that were written.
        notes: Why others were not.
        is_complete: Whether nothing is missing that a second try could write.
    """

    files: list[Path]
    notes: list[str]
    is_complete: bool


def write_all(
    folder: Path, answer: Any, view: FitView, draws: dict[str, Any], seed: int
) -> Written:
    """Write everything that a fit leaves behind; what cannot be written is noted."""
    posterior: softcvi.Posterior = answer.posterior
    # A model that is evaluated meanwhile may change the current folder.
    place = folder.absolute()

    def save_netcdf(path: Path) -> None:
        # In memory first: HDF5 ends the process (SIGSEGV) where the disk is full.
        content = posterior.to_arviz(draws=draws).to_netcdf()
        with atomic_write(path) as handle:
            handle.write(content)

    writers: dict[str, Callable[[Path], Any]] = {
        POSTERIOR: lambda path: posterior.save(path, seed=seed),
        NETCDF: save_netcdf,
        PAGE: lambda path: write_report(view, path),
    }
    files, notes, is_complete = [], [], True
    for name, write in writers.items():
        try:
            write(place / name)
            files.append(folder / name)
        except (ImportError, TypeError, ValueError) as error:
            notes.append(f"{name} was not written: {error}")
        except OSError as error:
            is_complete = False
            notes.append(_not_written(name, error))
    # Last, since a folder with a record is taken for a complete one.
    try:
        files = [*(folder / path.name for path in save_fit(view, place)), *files]
    except OSError as error:
        is_complete = False
        notes.append(_not_written(Path(error.filename or RESULT).name, error))
    if view.status == "finished" and is_complete:
        (place / CHECKPOINT).unlink(missing_ok=True)
        remove_abandoned(place / CHECKPOINT)
    return Written(files, notes, is_complete)


def _not_written(name: str, error: OSError) -> str:
    return f"{name} was not written: {(error.strerror or str(error)).lower()}"


def file_digest(path: Path) -> str:
    """What tells the contents of a file from others, in the record of a fit."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def check_same(folder: Path, settings: dict[str, Any]) -> None:
    """Refuse to go on with a fit that was told something else."""
    before = read_record(folder).get("settings")
    if before is None:
        return
    changed = _changes({**_DEFAULTS, **before}, {**_DEFAULTS, **settings})
    if changed:
        raise CommandError(
            f"--resume: {folder} holds a fit that was told something else: "
            f"{', '.join(changed)}.\nGive --overwrite in its place to start again, or "
            "another --out."
        )


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    keys = [key for key in {**before, **now} if key not in _NOT_COMPARED]
    return [
        _change(key, before.get(key), now.get(key))
        for key in keys
        if before.get(key) != now.get(key)
    ]


def _change(key: str, before: Any, now: Any) -> str:
    if key == "data sha256":
        return "other --data"
    if key == "model sha256":
        return "the model's file has changed"
    flag = key if key == "model" else f"--{key.replace('_', '-')}"
    return f"{flag} {_word(before)} (now {_word(now)})"


def _word(value: Any) -> str:
    return "none" if value is None else str(value)


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
        tell(
            f"note: {path} has no {_listed(missing)}; without these there is no "
            "coverage"
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
