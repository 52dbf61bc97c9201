"""Checkpoints: the state of a fit on disk, so that a kill loses little."""

import dataclasses
import hashlib
import json
import os
import struct
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from softcvi.fitting._loop import LoopState, Run

# What NumPy raises for truncated, altered and foreign files.
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    AttributeError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


@dataclasses.dataclass
class Checkpoint:
    """Where and how often a fit writes its state.

    A fit that finds a checkpoint of the same run at ``path`` goes on from there, and
    ends with the same bits as one that was never interrupted.

    Args:
        path: The file; replaced atomically.
        every: Seconds between writes.

    Example:
        >>> import softcvi
        >>> checkpoint = softcvi.fitting.Checkpoint("fit.ckpt", every=30.0)
    """

    path: str | os.PathLike
    every: float = 30.0

    def __post_init__(self) -> None:
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every

    def write(self, state: LoopState, step: int, run: Run) -> None:
        """Write the state after a step; a crash in between leaves the old file."""
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(state)]
        arrays: dict[str, Any] = {f"leaf{i}": leaf for i, leaf in enumerate(leaves)}
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=path.name, delete=False
        ) as handle:
            np.savez(handle, step=step, identity=fingerprint(run, state), **arrays)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(handle.name, path)
        self._last = time.monotonic()

    def read(self, state: LoopState, run: Run) -> tuple[LoopState, int] | None:
        """The stored state and step, or None if there is no file."""
        path = Path(self.path)
        if not path.exists():
            return None
        try:
            # Opened here, because NumPy leaves a damaged file open.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                identity = str(stored["identity"])
                step = int(stored["step"])
                leaves, treedef = jax.tree_util.tree_flatten(state)
                arrays = [stored[f"leaf{i}"] for i in range(len(leaves))]
        except _UNREADABLE as error:
            raise ValueError(
                f"checkpoint: {path} is damaged ({error}). Delete it to start afresh."
            ) from error
        if identity != fingerprint(run, state):
            raise ValueError(
                f"checkpoint: {path} belongs to another fit (key, steps, data, guide "
                "or objective differ). Give another path, or delete it to start afresh."
            )
        restored = [
            jax.numpy.asarray(array, leaf.dtype)
            for array, leaf in zip(arrays, leaves, strict=True)
        ]
        return jax.tree_util.tree_unflatten(treedef, restored), step


def fingerprint(run: Run, state: LoopState) -> str:
    """Identity of a run: its key, length, shapes, and the arrays it begins with."""
    digest = hashlib.sha256()
    digest.update(np.asarray(jax.random.key_data(run.key)).tobytes())
    digest.update(json.dumps([int(run.total_steps), int(run.startup_steps)]).encode())
    described = eqx.tree_pformat((run.objective, run.optimizer), short_arrays=False)
    digest.update(described.encode())
    for leaf in jax.tree_util.tree_leaves((run.template, run.static)):
        if eqx.is_array(leaf):
            digest.update(np.asarray(leaf).tobytes())
    for leaf in jax.tree_util.tree_leaves(state):
        digest.update(str((leaf.shape, leaf.dtype)).encode())
    return digest.hexdigest()


def as_checkpoint(checkpoint: "Checkpoint | str | os.PathLike | None"):
    """Normalise ``checkpoint=``: a path, or a Checkpoint."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint)
