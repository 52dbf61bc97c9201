"""Data and draws from JSON, CSV and NPZ files."""

import csv
import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from softcvi._once import named_once
from softcvi.cli._errors import CommandError

ENDINGS = (".json", ".csv", ".npz")
TABLES = (".csv", ".npz")
# A file may grow by this factor when it is unpacked, and up to this many bytes.
_MAX_GROWTH, _MAX_BYTES = 200, 8 * 2**30
_SMALL_BYTES = 64 * 2**20
# Letters of an array of texts, each of which takes as much as the longest, and four
# bytes per letter.
_MAX_LETTERS = _SMALL_BYTES // 4
# Elements that the columns of a file may leave out of all arrays together, beyond ten
# for each column.
_MAX_HOLES = 1000
# Rows without a number in them, which take memory once they are listed.
_MAX_EMPTY = 1_000_000
_REMEDIES = {
    "json": "Correct it there; python -m json.tool {path} checks it.",
    "csv": "It needs a line of names and lines of numbers, in UTF-8.",
    "npz": "Write it with numpy.savez, from arrays of numbers.",
}
# Kinds of files that people have and this command does not read.
_OTHERS = {
    ".nc": "Write it as NPZ: numpy.savez(path, **{name: group[name].values for name in "
    "group}), with group a group of xarray or ArviZ; draws need one leading axis.",
    ".parquet": "Write it as CSV with pandas, or, if it is large, read it in the model "
    "with softcvi.adapters.ParquetRows.",
}


def read_data(path: Path) -> dict[str, Any]:
    """Named values: arrays, and whole numbers such as sizes as they are."""
    if not path.is_file():
        raise CommandError(f"{path}: no such file. Check the path.")
    readers = {".json": _read_json, ".csv": _read_csv, ".npz": _read_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(ENDINGS)
        remedy = _OTHERS.get(path.suffix.lower(), "")
        raise CommandError(
            f"{path}: unknown kind of file. Use one of {known}. {remedy}".rstrip()
        )
    try:
        return reader(path)
    except CommandError:
        raise
    except Exception as error:
        # Damaged files fail in many ways: zlib.error, RecursionError, MemoryError...
        ending = path.suffix[1:].lower()
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CommandError(
            f"{path}: not a readable {ending.upper()} file ({why}).\n"
            f"{_REMEDIES[ending].format(path=path)}"
        ) from error


def read_draws(path: Path) -> dict[str, np.ndarray]:
    """Draws taken as the truth: arrays with a leading axis of draws.

    Columns such as ``theta[0]``, ``theta[1]`` become one array ``theta``; an NPZ file
    of ``softcvi references`` is read as well.
    """
    values = read_data(path)
    stored = {k[len("draws/") :]: v for k, v in values.items() if k[:6] == "draws/"}
    arrays = {name: np.asarray(value) for name, value in (stored or values).items()}
    lengths = {array.shape[0] if array.ndim else None for array in arrays.values()}
    if len(lengths) != 1 or None in lengths:
        raise CommandError(
            f"{path}: draws need arrays with one leading axis of the same length."
        )
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise CommandError(
                f"{path}: '{name}' holds no numbers. Give draws in numbers only."
            )
    return _gather(path, arrays)


def _gather(path: Path, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    parts: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    found: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        match = re.fullmatch(r"(.+)\[([\d,]{1,200})\]", name)
        if match is None:
            found[name] = column
        else:
            index = tuple(int(i) for i in match[2].split(",") if i)
            parts.setdefault(match[1], {})[index] = column
    holes = 0
    for name, pieces in parts.items():
        shape = _shape_of(path, name, list(pieces))
        holes += max(math.prod(shape) - 10 * len(pieces), 0)
        if holes > _MAX_HOLES:
            last = ",".join(str(length - 1) for length in shape)
            raise CommandError(
                f"{path}: '{name}[{last}]' asks for {math.prod(shape)} columns, and "
                f"the file has {len(pieces)} of them. Correct the index."
            )
        length = len(next(iter(pieces.values())))
        whole = np.full((length, *shape), np.nan)
        for index, column in pieces.items():
            place: tuple[Any, ...] = (slice(None), *index)
            whole[place] = column
        found[name] = whole
    return found


def _shape_of(path: Path, name: str, indices: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that indices of columns span."""
    if len({len(index) for index in indices}) > 1:
        raise CommandError(
            f"{path}: columns of '{name}' have different numbers of indices. Name them "
            "all as the model does."
        )
    return tuple(max(axis) + 1 for axis in zip(*indices, strict=True))


def _read_json(path: Path) -> dict[str, Any]:
    values = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=named_once)
    if not isinstance(values, dict):
        raise CommandError(f'{path}: no object. Write one such as {{"y": [1, 2, 3]}}.')
    return {name: _as_value(path, name, value) for name, value in values.items()}


def _as_value(path: Path, name: str, value: Any) -> Any:
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    _check_texts(path, name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty((), object)
    if array.dtype == object:
        raise CommandError(
            f"{path}: '{name}' is not a rectangular array of numbers. Correct it there."
        )
    return array


def _check_texts(path: Path, name: str, value: Any) -> None:
    """Refuse texts of which one is so long that the array would fill the memory."""
    longest = _longest_text(value)
    if longest and longest * _count(value) > _MAX_LETTERS:
        raise CommandError(
            f"{path}: '{name}' holds {_count(value)} values, one of them a text of "
            f"{longest} letters. Give numbers, or short names."
        )


def _longest_text(value: Any) -> int:
    if isinstance(value, list):
        return max(map(_longest_text, value), default=0)
    return len(value) if isinstance(value, str) else 0


def _count(value: Any) -> int:
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _read_csv(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8-sig") as handle:
        reader = csv.reader(handle)
        rows = [(reader.line_num, row) for row in reader if row]
    if not rows:
        raise ValueError("it is empty")
    (_, header), *body = rows
    named_once([(name.strip(), None) for name in header])
    for line, row in body:
        if len(row) != len(header):
            raise CommandError(
                f"{path}: line {line} has {len(row)} values, the header {len(header)}. "
                "Mend the line."
            )
    columns: dict[str, Any] = {}
    for i, name in enumerate(header):
        cells = [(line, row[i].strip()) for line, row in body]
        columns[name.strip()] = _as_numbers(path, name.strip(), cells)
    return columns


def _as_numbers(path: Path, name: str, cells: list[tuple[int, str]]) -> np.ndarray:
    """Whole numbers, numbers or, if not one cell is a number, text."""
    texts = [text for _, text in cells]
    for kind in (int, float):
        try:
            return np.array([kind(text) for text in texts], dtype=kind)
        except (ValueError, OverflowError):
            continue
    odd = [(line, text) for line, text in cells if not _is_number(text)]
    if len(odd) < len(cells):
        line, text = odd[0]
        what = f"holds '{text}'" if text else "is empty"
        raise CommandError(
            f"{path}: column '{name}' {what} in line {line}; remove the row or give a "
            "number."
        )
    _check_texts(path, name, texts)
    return np.array(texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_npz(path: Path) -> dict[str, Any]:
    _check_sizes(path)
    with np.load(path, allow_pickle=False) as stored:
        return {name: _native(stored[name]) for name in stored.files}


def _native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's order of bytes, which is all that JAX takes."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_sizes(path: Path) -> None:
    """Refuse arrays that are larger than what the file holds, before making them."""
    limit = min(max(_SMALL_BYTES, _MAX_GROWTH * path.stat().st_size), _MAX_BYTES)
    total = 0
    with zipfile.ZipFile(path) as archive:
        named_once([(member.filename, None) for member in archive.infolist()])
        for member in archive.infolist():
            total += member.file_size
            with archive.open(member) as handle:
                version = np.lib.format.read_magic(handle)
                read_header = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read_header(handle)
                held = member.file_size - handle.tell()
            is_empty = math.prod(max(n, 1) for n in shape) > max(held, _MAX_EMPTY)
            if is_empty or math.prod(shape) * dtype.itemsize > held:
                raise ValueError(f"{member.filename} holds less than its header says")
            if total > limit:
                raise ValueError(
                    f"{member.filename} unpacks to {total} bytes, more than {limit}"
                )
