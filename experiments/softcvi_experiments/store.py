"""Files of the experiments beside their records: arrays and JSON, whole or not."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]
Draws = dict[str, np.ndarray]


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
