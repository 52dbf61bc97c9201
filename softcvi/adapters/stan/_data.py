"""Data for a Stan program: a dict, a JSON file or an R dump, as JSON text."""

import gzip
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from softcvi.adapters.stan._fitted import fitted, plain
from softcvi.adapters.stan._r_dump import parse_r_dump
from softcvi.adapters.stan._stanc import Input

# A compressed file may grow by this factor when it is unpacked, and up to so many bytes
# in any case.
_MAX_GROWTH, _SMALL_BYTES = 200, 64 * 2**20
# What a file should have been, and what to do, by whether it is an R dump.
_WORDS = {
    False: ("JSON", "An R dump needs a name that ends in .R or .dump."),
    True: ("an R dump", "Write it again with R's dump, or as JSON."),
}


def read_data(data: Mapping[str, Any] | str | os.PathLike | None) -> dict[str, Any]:
    """Named values, from a dict or a file.

    Args:
        data: A mapping; or a path to JSON (also zipped, as in posteriordb, or
            gzipped) or to an R dump (``.R``, ``.r``, ``.dump``); None for no data.

    Example:
        >>> read_data({"N": 3})
        {'N': 3}
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        return dict(data)
    path = Path(data)
    if not path.is_file():
        raise FileNotFoundError(f"data: {path}: no such file.")
    stem = path.with_suffix("") if path.suffix in (".zip", ".gz") else path
    is_dump = stem.suffix.lower() in (".r", ".rdump", ".dump")
    try:
        text = _text(path)
        values = parse_r_dump(text) if is_dump else json.loads(text)
    # Damaged files fail in many ways: BadZipFile, zlib.error, RecursionError...
    except Exception as error:
        what, remedy = _WORDS[is_dump]
        why = " ".join(str(error).removeprefix("data: ").split()) or _kind(error)
        raise ValueError(
            f"data: {path} is not {what} ({why:.300}). {remedy}"
        ) from error
    if not isinstance(values, dict):
        raise ValueError(
            f"data: {path} must hold one JSON object of named values. Write it as "
            'in {"N": 3, "y": [1, 2, 3]}.'
        )
    return values


def _kind(error: Exception) -> str:
    return type(error).__name__


def _text(path: Path) -> str:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            name = _only_file(archive.namelist())
            with archive.open(name) as handle:
                return _unpacked(handle, path).decode()
    if path.suffix == ".gz":
        with gzip.open(path) as packed:
            return _unpacked(packed, path).decode()
    return path.read_text(encoding="utf-8")


def _unpacked(handle: IO[bytes] | gzip.GzipFile, path: Path) -> bytes:
    """What a compressed file holds, unless that is far more than its size."""
    limit = max(_SMALL_BYTES, _MAX_GROWTH * path.stat().st_size)
    content = handle.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it unpacks to more than {limit} bytes")
    return content


def _only_file(members: list[str]) -> str:
    # Some systems add files of their own beside the one that was packed.
    files = [m for m in members if not m.endswith("/") and "__MACOSX" not in m]
    if len(files) != 1:
        raise ValueError(f"it must hold one file; it holds {len(files)}")
    return files[0]


def as_json(data: Mapping[str, Any], inputs: Mapping[str, Input] | None) -> str:
    """JSON text as Stan reads it, checked against what the program declares.

    Args:
        data: Named values; those that the program does not declare are left out.
        inputs: What the data block declares, if that is known.

    Example:
        >>> as_json({"N": 2.0, "y": (1, 2)}, {"N": Input("int", 0)})
        '{"N": 2}'
    """
    if inputs is None:
        return json.dumps({name: plain(value) for name, value in data.items()})
    missing = sorted(set(inputs) - set(data))
    if missing:
        raise ValueError(
            f"data: the program needs {', '.join(missing)}; got "
            f"{', '.join(sorted(data)) or 'nothing'}."
        )
    values = {name: fitted(name, data[name], kind) for name, kind in inputs.items()}
    return json.dumps(values)
