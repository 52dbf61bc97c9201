"""The record store: JSON lines that are only ever added to, and files of arrays."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.sweeps import append_records, read_records
from softcvi_experiments.provenance import provenance

FILE_NAME = "records.jsonl"
Record = dict[str, Any]
Draws = dict[str, np.ndarray]


class Records:
    """The records of an output folder, one JSON object per line.

    Records are appended under a lock, so that several processes may add to one file.
    What a killed process has left of a batch is ignored by readers and removed by the
    next writer. Each record says under ``made`` which version, commit, machine and
    command it is from.

    Args:
        folder: The output folder; made if need be.

    Example:
        >>> import tempfile
        >>> records = Records(tempfile.mkdtemp())
        >>> records.add([{"task": "slcp", "run": 0, "score": float("nan")}])
        >>> [record] = records.find({"task": "slcp"})
        >>> record["score"], record["made"]["jax"] == __import__("jax").__version__
        (None, True)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / FILE_NAME
        self._read: tuple[tuple[int, int], list[Record]] | None = None

    def all(self) -> list[Record]:
        """Every record, in the order in which they were added.

        Example:
            >>> import tempfile
            >>> Records(tempfile.mkdtemp()).all()
            []
        """
        if not self.path.is_file():
            return []
        # A figure asks for a hundred pieces; the file is parsed when it has changed.
        stat = self.path.stat()
        version = stat.st_mtime_ns, stat.st_size
        if self._read is None or self._read[0] != version:
            self._read = version, read_records(self.path)
        return list(self._read[1])

    def find(self, identity: Mapping[str, Any]) -> list[Record]:
        """The records that agree with all of these values, by run.

        Args:
            identity: Values by name.

        Example:
            >>> import tempfile
            >>> Records(tempfile.mkdtemp()).find({"task": "slcp"})
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
            >>> records = Records(tempfile.mkdtemp())
            >>> records.add([{"seed": 0, "x": 1}, {"seed": 0, "x": 2}])
            >>> [record["x"] for record in records.latest("seed")]
            [2]
        """
        found = {tuple(r.get(name) for name in names): r for r in self.all()}
        return list(found.values())

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records, all or none.

        Args:
            records: JSON-friendly mappings; numbers that are not finite become null.

        Example:
            >>> import tempfile
            >>> records = Records(tempfile.mkdtemp())
            >>> records.add([{"run": 0}])
            >>> len(records.all())
            1
        """
        made = provenance()
        with _locked(self.path):
            append_records(self.path, ({"made": made, **record} for record in records))


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


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file, whole or not at all.

    Args:
        path: The file; an existing one is replaced.
        value: JSON-friendly.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.json"
        >>> write_json(path, {"a": 1})
        >>> json.loads(path.read_text())
        {'a': 1}
    """
    path = Path(path)
    text = json.dumps(value, indent=1) + "\n"
    with _replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A file to write that then takes the place of another; nothing is left behind."""
    # One name per file: what a killed process left is written over.
    temporary = path.with_name(f".unfinished-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class DrawStore:
    """Named draws by what made them, so that no fit is repeated.

    Args:
        folder: The output folder.

    Example:
        >>> import tempfile
        >>> store = DrawStore(tempfile.mkdtemp())
        >>> store.put({"task": "slcp", "run": 0}, {"theta": np.zeros((2, 5))})
        >>> store.get({"run": 0, "task": "slcp"})["theta"].shape
        (2, 5)
        >>> store.get({"run": 1, "task": "slcp"}) is None
        True
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder) / "draws"
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, identity: Mapping[str, Any]) -> Draws | None:
        """Return the draws, or None if there are none.

        Args:
            identity: JSON values by name.
        """
        path = self._path(identity)
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                names = [name for name in stored.files if name != "identity"]
                return {name: stored[name] for name in names}
        # Damaged files fail in many ways: BadZipFile, zlib.error, EOFError...
        except Exception as error:
            raise ValueError(
                f"{path}: is damaged ({error}). Delete it, and the fit is made again."
            ) from error

    def put(self, identity: Mapping[str, Any], draws: Draws) -> None:
        """Keep draws, whole or not at all.

        Args:
            identity: JSON values by name.
            draws: The draws.
        """
        path = self._path(identity)
        label = json.dumps(dict(identity), sort_keys=True)
        arrays: dict[str, Any] = {"identity": np.array(label), **draws}
        with _replaced(path) as temporary:
            np.savez_compressed(temporary, **arrays)

    def _path(self, identity: Mapping[str, Any]) -> Path:
        label = json.dumps(dict(identity), sort_keys=True)
        return self._folder / f"{hashlib.sha256(label.encode()).hexdigest()[:16]}.npz"
