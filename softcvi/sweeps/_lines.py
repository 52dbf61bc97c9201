"""Files of records: one JSON object per line, added to in batches."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]
# Each line of a batch says which one it is, and of how many.
_BATCH = "of_batch"


def read_records(path: str | os.PathLike) -> list[Record]:
    """Read the records of a file, without those of a batch that was cut off.

    Args:
        path: The file; without one there are no records.

    Example:
        >>> import pathlib, tempfile
        >>> from softcvi.sweeps import append_records, read_records
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "records.jsonl"
        >>> append_records(path, [{"run": 0}, {"run": 1}])
        >>> _ = path.write_bytes(path.read_bytes()[:-3])  # killed while it wrote
        >>> read_records(path)
        []
    """
    path = Path(path)
    if not path.is_file():
        return []
    data = path.read_bytes()
    lines = data[: _length_of_whole_batches(data)].split(b"\n")
    records = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            record = _parsed(path, number, line)
            record.pop(_BATCH, None)
            records.append(record)
    return records


def append_records(
    path: str | os.PathLike, records: Iterable[Mapping[str, Any]]
) -> None:
    """Add records to a file, all or none, also if the process is killed meanwhile.

    What a killed process left of a batch is removed. Only one process at a time may do
    this; ``RecordStore`` holds a lock.

    Args:
        path: The file; made if it is missing.
        records: Mappings of JSON values; numbers that are not finite become null.

    Example:
        >>> import pathlib, tempfile
        >>> from softcvi.sweeps import append_records, read_records
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "records.jsonl"
        >>> append_records(path, [{"khat": float("nan")}])
        >>> read_records(path)
        [{'khat': None}]
    """
    batch = list(records)
    lines = []
    for position, record in enumerate(batch, start=1):
        mark = {_BATCH: [position, len(batch)]} if len(batch) > 1 else {}
        lines.append(json.dumps(_finite({**record, **mark}), allow_nan=False) + "\n")
    data = "".join(lines).encode()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        with open(file, "rb", closefd=False) as handle:
            end = _length_of_whole_batches(handle.read())
        try:
            os.ftruncate(file, end)
            while data:
                data = data[os.write(file, data) :]
            os.fsync(file)
        except BaseException as error:
            os.ftruncate(file, end)
            if isinstance(error, OSError):
                # A full disk does not say which file it was about.
                words = error.strerror or str(error)
                raise OSError(error.errno, words, str(path)) from error
            raise
    finally:
        os.close(file)


def _parsed(path: Path, number: int, line: bytes) -> Record:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("no JSON object")
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{path}: line {number} is not JSON of a record ({error}). "
            "Repair or remove that line, or choose another folder."
        ) from error
    return record


def _length_of_whole_batches(data: bytes) -> int:
    """Bytes before the line, or the lines of a batch, that a killed process left."""
    end = data.rfind(b"\n") + 1
    position, size = _place_in_batch(data[_begin_of_line(data, end) : end])
    if position < size:
        for _ in range(min(position, data.count(b"\n"))):
            end = _begin_of_line(data, end)
    return end


def _begin_of_line(data: bytes, end: int) -> int:
    return data.rfind(b"\n", 0, max(end - 1, 0)) + 1


def _place_in_batch(line: bytes) -> tuple[int, int]:
    """Which record of how many a line is; a damaged line is reported by the reader."""
    try:
        position, size = json.loads(line)[_BATCH]
        return (int(position), int(size)) if 0 < position < size else (1, 1)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, MemoryError):
        return 1, 1


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
