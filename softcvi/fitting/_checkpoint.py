"""Checkpoints: the states of a fit on disk."""

import dataclasses
import hashlib
import json
import os
import stat
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from softcvi._atomic import atomic_write, remove_abandoned
from softcvi.fitting._loop import LoopState

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


class Stored(NamedTuple):
    """What a checkpoint has of one run.

    Attributes:
        state: The state after a step.
        step: The number of that step.
        first: ELBO of the first step; None in files of older versions.
    """

    state: LoopState
    step: int
    first: float | None


class CheckpointFile:
    """The checkpoint of one call, with a state for each guide that it tries.

    Args:
        checkpoint: Where, and how often.
    """

    def __init__(self, checkpoint: Checkpoint):
        # A model may change the current folder.
        self.path = Path(checkpoint.path).absolute()
        self._check_path()
        self.every = checkpoint.every
        self._last = time.monotonic()
        self._states: dict[str, tuple[int, float | None, list[bytes]]] = {}
        self._writable = True

    def _check_path(self) -> None:
        """Refuse what can be no file; opening a pipe would wait for ever."""
        why = "not a file"
        try:
            if stat.S_ISREG(os.stat(self.path).st_mode):
                return
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # what cannot be written is told then, and the fit goes on
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(f"checkpoint: {self.path}: {why}. Give another path.")

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self.every

    def write(self, stored: Stored, identity: str) -> None:
        """Write the state after a step; a crash in between leaves the old file."""
        leaves = jax.tree_util.tree_leaves(stored.state)
        content = [np.asarray(leaf).tobytes() for leaf in leaves]
        self._states[identity] = stored.step, stored.first, content
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
        entries = [
            {"identity": i, "step": s, "first": first, "sha256": _digest(leaves)}
            for i, (s, first, leaves) in self._states.items()
        ]
        header = json.dumps({"format": _FORMAT, "states": entries})
        with atomic_write(self.path) as handle, zipfile.ZipFile(handle, "w") as archive:
            archive.writestr(_HEADER, header)
            for i, (*_, leaves) in enumerate(self._states.values()):
                for j, leaf in enumerate(leaves):
                    archive.writestr(f"{i}/{j}", leaf)

    def read(self, state: LoopState, identity: str, total: int) -> Stored | None:
        """What the file has of a run, or None if there is none.

        Args:
            state: The first state, for shapes and dtypes.
            identity: Fingerprint of the run.
            total: Its number of steps.
        """
        self._check_path()
        remove_abandoned(self.path)
        if not self.path.exists():
            return None
        leaves, treedef = jax.tree_util.tree_flatten(state)
        try:
            with zipfile.ZipFile(self.path) as archive:
                header = json.loads(_member(archive, _HEADER, _HEADER_LIMIT))
                if header["format"] != _FORMAT:
                    raise ValueError(f"format {header['format']}")
                entries = {str(e["identity"]): e for e in header["states"]}
                if identity in entries:
                    i, entry = list(entries).index(identity), entries[identity]
                    step, first = entry["step"], entry.get("first")
                    stored = [
                        _leaf(archive, f"{i}/{j}", leaf)
                        for j, leaf in enumerate(leaves)
                    ]
                    # Files of older versions have neither.
                    first = None if first is None else float(first)
                    digest = entry.get("sha256")
                    if digest not in (None, _digest([s.tobytes() for s in stored])):
                        raise ValueError("its numbers are not those that were written")
        except _UNREADABLE as error:
            raise CheckpointError(
                f"checkpoint: {self.path} is damaged ({error}). Delete it to start "
                "afresh."
            ) from error
        if identity not in entries:
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
        self._states[identity] = step, first, [leaf.tobytes() for leaf in stored]
        arrays = [jnp.asarray(leaf) for leaf in stored]
        return Stored(jax.tree_util.tree_unflatten(treedef, arrays), step, first)

    def refuse_another(self, is_same: bool) -> None:
        """Raise if the first step shows that the file is of another log density."""
        if not is_same:
            raise CheckpointError(
                f"checkpoint: {self.path} belongs to another fit: the first step has "
                "another ELBO than the one that was kept, so that the log density or "
                "its data differ. Give another path, or delete it to start afresh."
            )


def _digest(leaves: list[bytes]) -> str:
    digest = hashlib.sha256()
    for leaf in leaves:
        digest.update(leaf)
    return digest.hexdigest()


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
