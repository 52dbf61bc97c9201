"""The folder of a fit: what may be there before, and what is there after."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import softcvi
from softcvi.cli._errors import CommandError
from softcvi.report import FitView, save_fit, write_report

CHECKPOINT = "checkpoint.npz"
RESULT = "result.json"


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


def write_all(
    folder: Path, answer: Any, view: FitView, draws: dict[str, Any], seed: int
) -> tuple[list[Path], list[str]]:
    """Write everything that a fit leaves behind."""
    notes = []
    files = save_fit(view, folder)
    posterior: softcvi.Posterior = answer.posterior
    path = folder / "posterior.softcvi"
    try:
        posterior.save(path, seed=seed)
        files.append(path)
    except (TypeError, ValueError) as error:
        notes.append(f"posterior.softcvi was not written: {error}")
    path = folder / "draws.nc"
    try:
        posterior.to_arviz(draws=draws).to_netcdf(path)
        files.append(path)
    except ImportError as error:
        notes.append(f"draws.nc was not written: {error}")
    files.append(write_report(view, folder / "report.html"))
    if view.status == "finished":
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return files, notes


def file_digest(path: Path) -> str:
    """What tells the contents of a file from others, in the record of a fit."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
