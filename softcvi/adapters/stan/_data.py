"""Data for a Stan program: a dict, a JSON file or an R dump, as JSON text."""

import gzip
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

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
            return archive.read(archive.namelist()[0]).decode()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    return path.read_text()


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
        return json.dumps({name: _plain(value) for name, value in data.items()})
    missing = sorted(set(inputs) - set(data))
    if missing:
        raise ValueError(
            f"data: the program needs {', '.join(missing)}; got "
            f"{', '.join(sorted(data)) or 'nothing'}."
        )
    values = {name: _fitted(name, data[name], kind) for name, kind in inputs.items()}
    return json.dumps(values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, str | int | float | bool):
        return int(value) if isinstance(value, bool) else value
    return _plain(np.asarray(value).tolist())


def _fitted(name: str, value: Any, kind: Input) -> Any:
    """A value with the type and the number of axes that the program declares."""
    value = _plain(value)
    if kind.type not in ("int", "real") or isinstance(value, dict):
        return value
    array = _array(name, value)
    if kind.dimensions == 0 and array.size == 1:
        value = array.reshape(()).tolist()
    elif kind.dimensions == 1 and array.ndim == 0:
        # R has no scalars: a vector of length one is written as a number.
        value = [value]
    if kind.type == "int":
        if array.size and not np.all(array == np.round(array)):
            raise ValueError(
                f"data: '{name}' is declared as int, but holds other numbers, such as "
                f"{array[array != np.round(array)].flat[0]}."
            )
        return _whole(value)
    return value


def _array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"data: '{name}' must be numbers in a rectangular array ({error}). Missing "
            "values have to be coded as numbers."
        ) from error


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value)
