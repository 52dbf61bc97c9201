"""The folder of a fit: what may be there before, and what is there after."""

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import jax

import softcvi
from softcvi.cli._errors import CommandError
from softcvi.report import FitView, save_fit, write_report

CHECKPOINT = "checkpoint.npz"
CHAIN = "chain.npz"
RESULT = "result.json"
_KEPT = ("kind", "guide", "objective", "alpha", "particles", "steps", "seed", "starts",
         "until_khat", "x64")  # fmt: skip


def check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse to write over a fit by accident, and where nothing can be written.

    Args:
        folder: Where the fit will be.
        resume: Go on from what is there.
        overwrite: Replace what is there.

    Example:
        >>> check_folder(Path("no-such-folder"), resume=False, overwrite=False)
    """
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out {folder}: is a file. Give a folder.")
    _check_writable(folder)
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


def clear_folder(folder: Path) -> None:
    """Forget the fit in a folder, once all is known to be well with the next one.

    Args:
        folder: Where the fit will be.

    Example:
        >>> clear_folder(Path("no-such-folder"))
    """
    for name in (CHECKPOINT, RESULT):
        (folder / name).unlink(missing_ok=True)


def _check_writable(folder: Path) -> None:
    """Try a file there, or where the folder would be: permissions do not tell all."""
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


def is_finished(folder: Path) -> bool:
    """Whether the fit in a folder has done all its steps.

    Args:
        folder: The folder.

    Example:
        >>> is_finished(Path("no-such-folder"))
        False
    """
    path = folder / RESULT
    if not path.exists() or (folder / CHECKPOINT).exists():
        return False
    return json.loads(path.read_text(encoding="utf-8")).get("status") == "finished"


def settings_of(args: argparse.Namespace, path: Path, name: str) -> dict[str, Any]:
    """What a fit was told, and fingerprints of the files it read.

    Args:
        args: What the command was given.
        path: The model's file.
        name: The model's name.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "model.py"
        >>> _ = path.write_text("")
        >>> settings_of(argparse.Namespace(data=None, seed=3), path, "model")["seed"]
        3
    """
    told = {key: getattr(args, key, None) for key in _KEPT}
    told = {key: value for key, value in told.items() if value is not None}
    files = {"model": path} if args.data is None else {"model": path, "data": args.data}
    hashes = {f"{key} sha256": file_digest(file) for key, file in files.items()}
    data = {} if args.data is None else {"data": args.data.name}
    return {"model": f"{path.name}:{name}", **data, **told, **hashes}


def write_all(
    folder: Path, result: softcvi.FitResult, view: FitView, seed: int
) -> tuple[list[Path], list[str]]:
    """Write everything that a fit leaves behind.

    Args:
        folder: Where to.
        result: The fit.
        view: The same, for the page.
        seed: Seed of the draws for ArviZ.

    Returns:
        The files, and remarks on what could not be written.
    """
    notes = []
    files = save_fit(view, folder)
    posterior = folder / "posterior.softcvi"
    try:
        result.posterior.save(posterior, seed=seed)
        files.append(posterior)
    except (TypeError, ValueError) as error:
        notes.append(f"posterior.softcvi was not written: {error}")
    netcdf = folder / "draws.nc"
    try:
        key = jax.random.key(seed)
        tree = result.posterior.to_arviz(
            key=key, n=len(next(iter(view.columns.values())))
        )
        tree.to_netcdf(netcdf)
        files.append(netcdf)
    except ImportError as error:
        notes.append(f"draws.nc was not written: {error}")
    files.append(write_report(view, folder / "report.html"))
    if result.status == "finished":
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return files, notes


def file_digest(path: Path) -> str:
    """What tells the contents of a file from others, in the record of a fit.

    Args:
        path: The file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "data.json"
        >>> _ = path.write_text("{}")
        >>> file_digest(path)
        '44136fa355b3678a'
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
