"""Data for a Stan program: a dict, a JSON file or an R dump, as JSON text."""

import gzip
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softcvi.adapters.stan._fitted import fitted, plain
from softcvi.adapters.stan._r_dump import parse_r_dump
from softcvi.adapters.stan._stanc import Input


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
    text = _text(path)
    stem = path.with_suffix("") if path.suffix in (".zip", ".gz") else path
    if stem.suffix.lower() in (".r", ".rdump", ".dump"):
        return parse_r_dump(text)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"data: {path} is not JSON ({error}). An R dump needs a name that ends in "
            ".R or .dump."
        ) from error
    if not isinstance(values, dict):
        raise ValueError(f"data: {path} must hold one JSON object of named values.")
    return values


def _text(path: Path) -> str:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.read(_only_file(path, archive.namelist())).decode()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    return path.read_text(encoding="utf-8")


def _only_file(path: Path, members: list[str]) -> str:
    # Some systems add files of their own beside the one that was packed.
    files = [m for m in members if not m.endswith("/") and "__MACOSX" not in m]
    if len(files) != 1:
        raise ValueError(f"data: {path} must hold one file; it holds {len(files)}.")
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
