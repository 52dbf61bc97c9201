"""Checkpoints: the states of a fit on disk, and the identity of the fit they are of."""

import dataclasses
import functools
import hashlib
import json
import os
import re
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jax_core

from softcvi._atomic import atomic_write, remove_abandoned
from softcvi.fitting._loop import LoopState, Run, advance_one
from softcvi.targets._row_sums import RowsOnDevices

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
        entries = [
            {"identity": i, "step": s, "sha256": _digest(leaves)}
            for i, (s, leaves) in self._states.items()
        ]
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
                entries = {str(e["identity"]): e for e in header["states"]}
                if identity in entries:
                    i, step = list(entries).index(identity), entries[identity]["step"]
                    stored = [
                        _leaf(archive, f"{i}/{j}", leaf)
                        for j, leaf in enumerate(leaves)
                    ]
                    # Files of older versions have none.
                    digest = entries[identity].get("sha256")
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
        self._states[identity] = step, [leaf.tobytes() for leaf in stored]
        arrays = [jnp.asarray(leaf) for leaf in stored]
        return jax.tree_util.tree_unflatten(treedef, arrays), step


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


# Where an object lies in memory differs between processes that compute the same.
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def fingerprint(advance: Callable, state: LoopState, run: Run) -> str:
    """Digest of a fit: its program, every value in it, and where it begins.

    Two fits with the same digest have the same numbers at every step, whatever names
    their functions have: the program is traced, and the arrays that a log density
    closes over are part of it. What a Python function called back from the program
    closes over cannot be seen.

    Args:
        advance: The compiled loop: state, first and last step to new state.
        state: The first state.
        run: What stays the same over the steps.
    """
    digests: list[str] = []
    if jnp.ndim(run.key) == 0:
        portable = _portable(run, digests)
        if digests:
            run, advance = portable, functools.partial(_advance, portable)
    first = jnp.zeros((), jnp.int32)
    program = eqx.filter_make_jaxpr(advance)(state, first, first)[0]
    digest = hashlib.sha256(_ADDRESS.sub("", str(program.jaxpr)).encode())
    values = [
        leaf for leaf in jax.tree_util.tree_leaves((state, run)) if _is_array(leaf)
    ]
    for value in [*values, *_constants(program)]:
        digest.update(_as_bytes(value))
    digest.update("".join(digests).encode())
    return digest.hexdigest()


def _portable(run: Run, digests: list[str]) -> Run:
    """The run with rows in one place, so that its program names no devices."""
    _, target = eqx.combine(run.template, run.static)
    leaves = jax.tree_util.tree_leaves(target, is_leaf=_is_spread)
    rows = [leaf for leaf in leaves if _is_spread(leaf)]
    digests += [part.digest for part in rows]
    moved = [part.in_one_place() for part in rows]
    # Nothing of them is trained.
    untrained = [jax.tree_util.tree_map(lambda _: None, part) for part in moved]
    return dataclasses.replace(
        run,
        static=_with_rows(run.static, moved),
        template=_with_rows(run.template, untrained),
    )


def _with_rows(tree: Any, rows: list[Any]) -> Any:
    left = iter(rows)
    return jax.tree_util.tree_map(
        lambda leaf: next(left) if _is_spread(leaf) else leaf, tree, is_leaf=_is_spread
    )


def _is_spread(leaf: Any) -> bool:
    return isinstance(leaf, RowsOnDevices)


def _advance(run: Run, state: LoopState, start: Any, stop: Any) -> LoopState:
    return advance_one(state, start, stop, run)


def _constants(program: jax_core.ClosedJaxpr) -> Iterator[Any]:
    """Values that a program closes over, and those of the programs inside it."""
    yield from program.consts
    pending = [program.jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            yield from (
                v.val for v in equation.invars if isinstance(v, jax_core.Literal)
            )
            for parameter in jax.tree_util.tree_leaves(
                list(equation.params.values()), is_leaf=_is_program
            ):
                if isinstance(parameter, jax_core.ClosedJaxpr):
                    yield from parameter.consts
                    pending.append(parameter.jaxpr)
                elif isinstance(parameter, jax_core.Jaxpr):
                    pending.append(parameter)


def _is_program(value: Any) -> bool:
    return isinstance(value, jax_core.ClosedJaxpr | jax_core.Jaxpr)


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray)


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, jax.Array) and jnp.issubdtype(
        value.dtype, jax.dtypes.prng_key
    ):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return f"{array.shape} {array.dtype} ".encode() + array.tobytes()
