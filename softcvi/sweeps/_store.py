"""The record store: files of JSON lines that are only ever added to, in batches."""

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.sweeps._provenance import provenance

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


_FILE = "records.jsonl"


class RecordStore:
    """The records of a folder, one JSON object per line.

    Records are appended under a lock, so that several processes may add to one file.
    What a killed process has left of a batch is ignored by readers and removed by the
    next writer. Each record says under ``made`` which version, commit, machine and
    command it is from. One with an ``id`` is written once.

    Args:
        folder: Where the records are kept; made if it does not exist.

    Example:
        >>> import tempfile
        >>> from softcvi.sweeps import RecordStore
        >>> store = RecordStore(tempfile.mkdtemp())
        >>> store.add([{"id": "a", "khat": float("nan")}])
        >>> store.identifiers(), store.all()[0]["khat"]
        ({'a'}, None)
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / _FILE
        self._read: tuple[tuple[int, int], list[Record]] | None = None

    def all(self) -> list[Record]:
        """Every whole record, in the order of writing."""
        if not self.path.is_file():
            return []
        # A figure asks for a hundred pieces; the file is parsed when it has changed.
        stat = self.path.stat()
        version = stat.st_mtime_ns, stat.st_size
        if self._read is None or self._read[0] != version:
            self._read = version, read_records(self.path)
        return list(self._read[1])

    def identifiers(self) -> set[str]:
        """The ``id`` of all records that have one."""
        found = (record.get("id") for record in self.all())
        return {name for name in found if isinstance(name, str)}

    def find(self, identity: Mapping[str, Any]) -> list[Record]:
        """The records that agree with all of these values, by ``run``.

        Args:
            identity: Values by name.

        Example:
            >>> import tempfile
            >>> from softcvi.sweeps import RecordStore
            >>> RecordStore(tempfile.mkdtemp()).find({"task": "slcp"})
            []
        """
        wanted = identity.items()
        found = [r for r in self.all() if all(r.get(k) == v for k, v in wanted)]
        return sorted(found, key=lambda record: record.get("run", 0))

    def latest(self, *names: str) -> list[Record]:
        """The last record for each combination of these values.

        Args:
            *names: What identifies a record.

        Example:
            >>> import tempfile
            >>> from softcvi.sweeps import RecordStore
            >>> store = RecordStore(tempfile.mkdtemp())
            >>> store.add([{"seed": 0, "x": 1}, {"seed": 0, "x": 2}])
            >>> [record["x"] for record in store.latest("seed")]
            [2]
        """
        found = {tuple(r.get(name) for name in names): r for r in self.all()}
        return list(found.values())

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records with their provenance, all or none.

        Args:
            records: Mappings of JSON values; numbers that are not finite become null.
        """
        made, records = provenance(), list(records)
        is_named = any("id" in record for record in records)
        with _locked(self.path):
            known = self.identifiers() if is_named else ()
            fresh = (r for r in records if r.get("id") not in known)
            append_records(self.path, ({"made": made, **r} for r in fresh))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The file, held by this process alone."""
    path.parent.mkdir(parents=True, exist_ok=True)  # it may be gone since
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        try:
            import fcntl
        except ModuleNotFoundError:  # Windows: one writer only
            pass
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)  # which also gives the lock back
