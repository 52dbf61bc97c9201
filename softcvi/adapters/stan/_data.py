"""Data for a Stan program: a dict, a JSON file or an R dump, as JSON text."""

import gzip
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from softcvi._once import named_once
from softcvi.adapters.stan._r_dump import parse_r_dump
from softcvi.adapters.stan._stanc import Input
from softcvi.targets._source import most_unpacked

_LARGEST_INT = 2**31 - 1


def plain(value: Any) -> Any:
    """A value made of lists, numbers, strings and dicts alone.

    Args:
        value: Anything that NumPy reads; complex numbers become pairs.

    Example:
        >>> plain(np.array([True, False])), plain(1 - 2j)
        ([1, 0], [1.0, -2.0])
    """
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    if value is None or isinstance(value, str | int | float | bool):
        return int(value) if isinstance(value, bool) else value
    return plain(np.asarray(value).tolist())


def fitted(name: str, value: Any, kind: Input) -> Any:
    """A value with the type and the number of axes that the program declares.

    Args:
        name: Its name, for messages.
        value: What the user gave.
        kind: What the program declares.

    Raises:
        ValueError: If the value cannot be what the program declares.

    Example:
        >>> fitted("N", [3.0], Input("int", 0)), fitted("x", ["Inf"], Input("real", 1))
        (3, [inf])
    """
    value = plain(value)
    if isinstance(kind.type, tuple):
        return _tuple(name, value, kind.type, kind.dimensions)
    # A complex number is a pair, so that there is one axis more.
    axes = kind.dimensions + (kind.type == "complex")
    array = _with_axes(name, _array(name, value), axes)
    if kind.type == "int":
        return _whole(name, array).tolist()
    return array.tolist()


def _tuple(name: str, value: Any, parts: tuple[Input, ...], dimensions: int) -> Any:
    """JSON objects with the keys "1", "2" and so on, from these or from sequences."""
    if dimensions > 0:
        inner = Input(parts, dimensions - 1)
        return [fitted(f"{name}[{i + 1}]", v, inner) for i, v in enumerate(value)]
    if not isinstance(value, dict):
        sequence = value if isinstance(value, list) else [value]
        value = {str(i): part for i, part in enumerate(sequence, start=1)}
    if set(value) != {str(i + 1) for i in range(len(parts))}:
        raise ValueError(
            f"data: '{name}' is declared as a tuple of {len(parts)} parts; give a "
            f"Python tuple of that length, or a JSON object with the keys "
            f'"1" to "{len(parts)}".'
        )
    return {
        key: fitted(f"{name}.{key}", value[key], part)
        for key, part in zip(sorted(value, key=int), parts, strict=True)
    }


def _array(name: str, value: Any) -> np.ndarray:
    if _holds_none(value):
        raise ValueError(
            f"data: '{name}' holds missing values (null, None), which Stan does not "
            "have. Leave these rows out, or declare what is missing as parameters."
        )
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"data: '{name}' must be numbers in a rectangular array ({error}). Missing "
            "values have to be coded as numbers."
        ) from error


def _holds_none(value: Any) -> bool:
    if isinstance(value, list):
        return any(_holds_none(part) for part in value)
    return value is None


def _with_axes(name: str, array: np.ndarray, axes: int) -> np.ndarray:
    """The array with this number of axes, if that can be done without doubt."""
    if array.ndim == axes or array.size == 0:
        return array
    # R has no scalars and drops axes: a number may stand for an array that holds it.
    if array.size == 1:
        return array.reshape((1,) * axes)
    raise ValueError(
        f"data: '{name}' is declared with {_axes(axes)}; got an array of shape "
        f"{array.shape}, with {_axes(array.ndim)}."
    )


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def _whole(name: str, array: np.ndarray) -> np.ndarray:
    fractional = array[~(np.isfinite(array) & (array == np.round(array)))]
    if fractional.size:
        raise ValueError(
            f"data: '{name}' is declared as int, but holds other numbers, such as "
            f"{fractional.flat[0]}."
        )
    if array.size and np.max(np.abs(array)) > _LARGEST_INT:
        raise ValueError(
            f"data: '{name}' holds {np.max(np.abs(array)):.0f}, and integers of Stan "
            f"end at {_LARGEST_INT}. Declare it as real, or count in larger units."
        )
    return array.astype(np.int64)


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
        # R itself takes the last of two values of one name.
        values = (
            parse_r_dump(text)
            if is_dump
            else json.loads(text, object_pairs_hook=named_once)
        )
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
    limit = most_unpacked(path.stat().st_size)
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
