"""Records of finished work: append-only, with stable identifiers and provenance."""

import datetime
import functools
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax

from softcvi.sweeps._lines import append_records, read_records

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

    Several processes may write at the same time: each appends under a lock. Records
    that were cut off by a crash are left out when the file is read, together with those
    added by the same call, and removed at the next write.

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
        return read_records(self.path)

    def identifiers(self) -> set[str]:
        """The identifiers of all records."""
        found = (record.get("id") for record in self.all())
        return {name for name in found if isinstance(name, str)}

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records with provenance, all or none; an identifier only once.

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
                append_records(self.path, ({**stamp, **r} for r in fresh))
        except filelock.Timeout as error:
            raise TimeoutError(
                f"{self.folder}: another process has held the records for "
                f"{_LOCK_SECONDS:.0f} s. Wait for it, or choose another folder."
            ) from error
