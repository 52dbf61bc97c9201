"""Draws of fitted guides, kept in the output folder so that no fit is repeated."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Draws = dict[str, np.ndarray]


class DrawStore:
    """Named draws by what made them.

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

        Example:
            >>> import tempfile
            >>> DrawStore(tempfile.mkdtemp()).get({"run": 0}) is None
            True
        """
        path = self._path(identity)
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files if name != "identity"}

    def put(self, identity: Mapping[str, Any], draws: Draws) -> None:
        """Keep draws, whole or not at all.

        Args:
            identity: JSON values by name.
            draws: The draws.

        Example:
            >>> import tempfile
            >>> DrawStore(tempfile.mkdtemp()).put({"run": 0}, {"x": np.ones(3)})
        """
        path = self._path(identity)
        temporary = path.with_suffix(".partial.npz")
        label = json.dumps(dict(identity), sort_keys=True)
        arrays: dict[str, Any] = {"identity": np.array(label), **draws}
        np.savez_compressed(temporary, **arrays)
        os.replace(temporary, path)

    def _path(self, identity: Mapping[str, Any]) -> Path:
        label = json.dumps(dict(identity), sort_keys=True)
        return self._folder / f"{hashlib.sha256(label.encode()).hexdigest()[:16]}.npz"
