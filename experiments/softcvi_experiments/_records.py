"""One JSON object a fit, in a file that is whole at every moment."""

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FILE_NAME = "records.jsonl"


class Records:
    """The records of an output folder.

    The file is replaced by a longer one in a single step, so that a reader never
    meets half a piece, whenever a run is interrupted.

    Args:
        folder: The output folder; made if need be.

    Example:
        >>> import tempfile
        >>> records = Records(tempfile.mkdtemp())
        >>> records.add([{"task": "slcp", "run": 0, "score": float("nan")}])
        >>> records.find({"task": "slcp"})
        [{'task': 'slcp', 'run': 0, 'score': None}]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / FILE_NAME
        self._read: tuple[tuple[int, int, int], list[dict[str, Any]]] | None = None

    def all(self) -> list[dict[str, Any]]:
        """Every record.

        Example:
            >>> import tempfile
            >>> Records(tempfile.mkdtemp()).all()
            []
        """
        if not self.path.is_file():
            return []
        # A figure looks for a hundred pieces; every change replaces the file.
        stat = self.path.stat()
        version = stat.st_ino, stat.st_mtime_ns, stat.st_size
        if self._read is None or self._read[0] != version:
            self._read = version, self._parsed()
        return list(self._read[1])

    def _parsed(self) -> list[dict[str, Any]]:
        lines = self.path.read_text().splitlines()
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{self.path} holds a line that is not JSON ({error}); mend or move "
                "the file, or choose another --out"
            ) from error

    def find(self, identity: Mapping[str, Any]) -> list[dict[str, Any]]:
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
        return sorted(found, key=lambda record: record["run"])

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
        before = self.path.read_text() if self.path.is_file() else ""
        lines = [json.dumps(_finite(r), allow_nan=False) + "\n" for r in records]
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".records-")
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(before + "".join(lines))
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
