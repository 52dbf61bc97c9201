"""The record store: JSON lines that are only ever added to."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from softcvi.sweeps._lines import Record, append_records, read_records
from softcvi.sweeps._provenance import provenance

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
