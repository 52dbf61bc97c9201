"""Checkpoints: the states of a fit on disk, so that a kill loses little."""

import dataclasses
import json
import os
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi._atomic import atomic_write, remove_abandoned
from softcvi.fitting._state import LoopState

_FORMAT = 2
_HEADER = "checkpoint.json"
# Far more than the few hundred bytes of a header, and little for a hostile one.
_HEADER_LIMIT = 1 << 16
# What reading raises for truncated, altered and foreign files.
_UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    EOFError,
    TypeError,
    AttributeError,
    RuntimeError,
    ArithmeticError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: damaged, or of another fit."""


@dataclasses.dataclass
class Checkpoint:
    """Where and how often a fit writes its state.

    A fit that finds a checkpoint of the same run at ``path`` goes on from there, and
    ends with the same bits as one that was never interrupted. A file that cannot be
    written (a full disk) is reported by a warning, and the fit goes on without it.

    Args:
        path: The file; replaced atomically.
        every: Seconds between writes.

    Example:
        >>> import softcvi
        >>> checkpoint = softcvi.fitting.Checkpoint("fit.ckpt", every=30.0)
    """

    path: str | os.PathLike
    every: float = 30.0


class CheckpointFile:
    """The checkpoint of one call, with a state for each guide that it tries.

    Args:
        checkpoint: Where, and how often.
    """

    def __init__(self, checkpoint: Checkpoint):
        self.path = Path(checkpoint.path)
        self.every = checkpoint.every
        self._last = time.monotonic()
        self._states: dict[str, tuple[int, list[bytes]]] = {}
        self._writable = True

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every

    def write(self, state: LoopState, step: int, identity: str) -> None:
        """Write the state after a step; a crash in between leaves the old file."""
        leaves = jax.tree_util.tree_leaves(state)
        self._states[identity] = step, [np.asarray(leaf).tobytes() for leaf in leaves]
        self._last = time.monotonic()
        if not self._writable:
            return
        try:
            self._write_file()
        except OSError as error:
            self._writable = False
            warnings.warn(
                f"checkpoint: {self.path} cannot be written ({error}). The fit goes on "
                "without it; make room on the disk or give another path.",
                stacklevel=2,
            )

    def _write_file(self) -> None:
        entries = [{"identity": i, "step": s} for i, (s, _) in self._states.items()]
        header = json.dumps({"format": _FORMAT, "states": entries})
        with atomic_write(self.path) as handle, zipfile.ZipFile(handle, "w") as archive:
            archive.writestr(_HEADER, header)
            for i, (_, leaves) in enumerate(self._states.values()):
                for j, leaf in enumerate(leaves):
                    archive.writestr(f"{i}/{j}", leaf)

    def read(
        self, state: LoopState, identity: str, total: int
    ) -> tuple[LoopState, int] | None:
        """The stored state and step of a run, or None if there is none.

        Args:
            state: The first state, for shapes and dtypes.
            identity: Fingerprint of the run.
            total: Its number of steps.
        """
        remove_abandoned(self.path)
        if not self.path.exists():
            return None
        leaves, treedef = jax.tree_util.tree_flatten(state)
        try:
            if not self.path.is_file():  # opening a pipe would wait for ever
                raise ValueError("not a file")
            with zipfile.ZipFile(self.path) as archive:
                header = json.loads(_member(archive, _HEADER, _HEADER_LIMIT))
                if header["format"] != _FORMAT:
                    raise ValueError(f"format {header['format']}")
                steps = {str(e["identity"]): e["step"] for e in header["states"]}
                if identity in steps:
                    i, step = list(steps).index(identity), steps[identity]
                    stored = [
                        _leaf(archive, f"{i}/{j}", leaf)
                        for j, leaf in enumerate(leaves)
                    ]
        except _UNREADABLE as error:
            raise CheckpointError(
                f"checkpoint: {self.path} is damaged ({error}). Delete it to start "
                "afresh."
            ) from error
        if identity not in steps:
            if self._states:  # a further guide of the same fit, not begun when it ended
                return None
            raise CheckpointError(
                f"checkpoint: {self.path} belongs to another fit (key, steps, data, "
                "log density, guide or objective differ). Give another path, or delete "
                "it to start afresh."
            )
        if not (type(step) is int and 0 <= step <= total):
            raise CheckpointError(
                f"checkpoint: {self.path} is damaged (step {step!r} of {total}). "
                "Delete it to start afresh."
            )
        self._states[identity] = step, [leaf.tobytes() for leaf in stored]
        arrays = [jnp.asarray(leaf) for leaf in stored]
        return jax.tree_util.tree_unflatten(treedef, arrays), step


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """One member, of which no more is read than it may hold."""
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    with archive.open(name) as member:
        content = member.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name} has more than {limit} bytes")
    return content


def _leaf(archive: zipfile.ZipFile, name: str, like: Any) -> np.ndarray:
    size = like.size * like.dtype.itemsize
    content = _member(archive, name, size)
    if len(content) != size:
        raise ValueError(f"{name} has {len(content)} of {size} bytes")
    return np.frombuffer(content, like.dtype).reshape(like.shape)


def as_checkpoint(
    checkpoint: "CheckpointFile | Checkpoint | str | os.PathLike | None",
) -> CheckpointFile | None:
    """Normalise ``checkpoint=``: a path, a Checkpoint, or one that others share."""
    if checkpoint is None or isinstance(checkpoint, CheckpointFile):
        return checkpoint
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    return CheckpointFile(given)
