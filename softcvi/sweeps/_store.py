"""Records of finished work: append-only, with stable identifiers and provenance."""

import datetime
import functools
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax

_FILE = "records.jsonl"
_LOCK_SECONDS = 30.0


@functools.cache
def provenance() -> dict[str, str | int | None]:
    """Where a record comes from: versions, commit, machine and command.

    Example:
        >>> from softcvi.sweeps import provenance
        >>> sorted(provenance())
        ['backend', 'command', 'commit', 'cores', 'jax', 'machine', 'python', 'softcvi']
    """
    import softcvi

    return {
        "softcvi": softcvi.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "commit": _commit(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "backend": jax.default_backend(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _commit() -> str | None:
    """The commit of a checkout that the package is run from, if it is one."""
    folder = Path(__file__).resolve().parent
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() or None if run.returncode == 0 else None


class RecordStore:
    """The records of one folder, one JSON object per line.

    Several processes may write at the same time: each appends under a lock. A line that
    was cut off by a crash is left out when the file is read, and removed at the next
    write, so that an interrupted write loses nothing but itself.

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

    def all(self) -> list[dict[str, Any]]:
        """Every whole record, in the order of writing."""
        if not self.path.is_file():
            return []
        records = []
        # What follows the last end of a line was cut off while it was written.
        lines = self.path.read_bytes().split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError("no JSON object")
            except (ValueError, RecursionError, MemoryError) as error:
                raise ValueError(
                    f"{self.path}: line {number} is not JSON of a record ({error}). "
                    "Repair or remove that line, or choose another folder."
                ) from error
            records.append(record)
        return records

    def identifiers(self) -> set[str]:
        """The identifiers of all records."""
        found = (record.get("id") for record in self.all())
        return {name for name in found if isinstance(name, str)}

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records with their provenance; an identifier is written only once.

        Args:
            records: Mappings of JSON values; numbers that are not finite become null.
        """
        import filelock

        stamp = {
            "provenance": provenance(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        lock = filelock.FileLock(self.folder / ".records.lock", timeout=_LOCK_SECONDS)
        try:
            with lock:
                known = self.identifiers()
                fresh = [r for r in records if r.get("id") not in known]
                lines = [
                    json.dumps(_finite({**stamp, **r}), allow_nan=False) for r in fresh
                ]
                self._append("".join(line + "\n" for line in lines).encode())
        except filelock.Timeout as error:
            raise TimeoutError(
                f"{self.folder}: another process has held the records for "
                f"{_LOCK_SECONDS:.0f} s. Wait for it, or choose another folder."
            ) from error

    def _append(self, data: bytes) -> None:
        with self.path.open("ab") as handle:
            end = handle.tell()
            whole = _length_of_whole_lines(self.path) if end else 0
            if whole < end:
                handle.truncate(whole)
            try:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            except OSError:
                # A full disk must not leave half a record behind.
                handle.truncate(whole)
                raise


def _length_of_whole_lines(path: Path) -> int:
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
