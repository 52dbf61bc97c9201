"""Rows that are read from files, a block at a time, ahead of their use."""

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, Scalar

from softcvi.targets._row_sums import AbstractRows, folded_sum, sum_of_blocks


class AbstractRowSource(ABC):
    """Rows outside of memory, for ``DataTarget(data=...)``.

    ``softcvi.targets.NpyRows`` reads arrays of NumPy, ``softcvi.adapters.ParquetRows``
    and ``softcvi.adapters.ZarrRows`` those of other formats. One of your own says how
    many rows there are, what one looks like, and reads some.

    Example:
        >>> import jax, numpy as np
        >>> from softcvi.targets import AbstractRowSource
        >>> class Squares(AbstractRowSource):
        ...     num_rows = 1000
        ...     row = jax.ShapeDtypeStruct((), np.float32)
        ...
        ...     def read(self, start, stop):
        ...         return np.arange(start, stop, dtype=np.float32) ** 2
        >>> Squares().read(2, 4).tolist()
        [4.0, 9.0]
    """

    num_rows: int
    row: PyTree

    @abstractmethod
    def read(self, start: int, stop: int) -> PyTree:
        """Rows from ``start`` to before ``stop``, as arrays of NumPy."""


@contextlib.contextmanager
def named(trouble: str) -> Iterator[None]:
    """Turn any error of a reader into one that names the file and the remedy.

    Args:
        trouble: What it means, with the file.

    Example:
        >>> with named("path: x.npy is not a whole .npy file"):
        ...     raise EOFError("no data left")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: path: x.npy is not a whole .npy file; it may be truncated, ...
    """
    try:
        yield
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise ValueError(
            f"{trouble}; it may be truncated, damaged, missing or still being written "
            f"({type(error).__name__}: {words}). Write it again."
        ) from error


# What is unpacked at a time may be this many times larger than the file, and so large
# in any case.
_MAX_GROWTH, SMALL_BYTES = 200, 64 * 2**20


def most_unpacked(stored: int) -> int:
    """Bytes that a file may take at a time once it is unpacked.

    Args:
        stored: Bytes of the file.

    Example:
        >>> most_unpacked(2**20) // 2**20
        200
    """
    return max(SMALL_BYTES, _MAX_GROWTH * stored)


def check_unpacked(what: str, unpacked: int, stored: int, remedy: str) -> None:
    """Refuse to unpack what is far larger than the file that it comes from.

    Args:
        what: What it is, with the file.
        unpacked: Bytes that it takes in memory.
        stored: Bytes of the file.
        remedy: What to do about it.

    Example:
        >>> check_unpacked("rows of x", 2**20, 100, "Write shorter ones.")
    """
    limit = most_unpacked(stored)
    if unpacked > limit:
        raise ValueError(
            f"path: {what} take {unpacked} bytes, and the file has {stored}; more than "
            f"{limit} are not unpacked at a time. {remedy}"
        )


class NpyRows(AbstractRowSource):
    """Rows of ``.npy`` files, which are read in blocks and never as a whole.

    Args:
        paths: A path, or a pytree of paths: one file for each array.

    Example:
        >>> import tempfile, numpy as np
        >>> from softcvi.targets import NpyRows
        >>> path = f"{tempfile.mkdtemp()}/x.npy"
        >>> np.save(path, np.arange(6.0).reshape(3, 2))
        >>> NpyRows({"x": path}).read(1, 3)["x"].tolist()
        [[2.0, 3.0], [4.0, 5.0]]
    """

    def __init__(self, paths: PyTree):
        self.files = jax.tree_util.tree_map(_NpyFile, paths)
        rows = {f.shape[0] for f in jax.tree_util.tree_leaves(self.files)}
        if len(rows) != 1:
            raise ValueError(
                f"paths: all files need equally many rows; they have {sorted(rows)}."
            )
        [self.num_rows] = rows
        self.row = jax.tree_util.tree_map(
            lambda file: jax.ShapeDtypeStruct(file.shape[1:], file.dtype), self.files
        )

    def read(self, start: int, stop: int) -> PyTree:
        return jax.tree_util.tree_map(lambda file: file.read(start, stop), self.files)


class _NpyFile:
    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        with named(f"paths: {self.path} is not a whole .npy file"):
            mapped = np.lib.format.open_memmap(self.path, mode="r")
            if mapped.dtype.kind not in "biufc":
                raise ValueError(f"an array of {mapped.dtype}, not of numbers")
        if mapped.ndim == 0 or not mapped.flags.c_contiguous:
            raise ValueError(
                f"paths: {self.path} must have rows as its first axis, in C order. "
                "Write it with numpy.save(path, numpy.ascontiguousarray(x))."
            )
        self.shape, self.dtype, self.offset = mapped.shape, mapped.dtype, mapped.offset

    def read(self, start: int, stop: int) -> np.ndarray:
        # Read and not mapped: what is mapped stays in memory for as long as it likes.
        size = int(np.prod(self.shape[1:], dtype=np.int64))
        offset = self.offset + start * size * self.dtype.itemsize
        with named(f"paths: rows {start} to {stop} of {self.path} cannot be read"):
            flat = np.fromfile(
                self.path, self.dtype, (stop - start) * size, offset=offset
            )
            return flat.reshape(stop - start, *self.shape[1:])


class StreamedRows(AbstractRows):
    """Rows that are read while those before them are summed.

    Args:
        source: Where they come from.
        block: Rows that are read at a time.
        memory: Bytes in which blocks may be kept, so that they are read once.
    """

    num_rows: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    reader: "BlockReader" = eqx.field(static=True)

    def __init__(self, source: AbstractRowSource, block: int, memory: int):
        self.num_rows = source.num_rows
        self.block = min(block, source.num_rows)
        self.reader = BlockReader(source, self.block, memory)

    def total(
        self, terms: Callable[[PyTree], Array], dtype: Any
    ) -> tuple[Scalar, Scalar]:
        def block_sum(number: Array) -> Scalar:
            rows = jax.pure_callback(self.reader.read, self.reader.like, number)
            is_real = number * self.block + jnp.arange(self.block) < self.num_rows
            return folded_sum(jnp.where(is_real, terms(rows), 0.0))

        numbers = np.arange(self.reader.num_blocks, dtype=np.int32)
        return sum_of_blocks(block_sum, numbers, dtype)

    def take(self, index: np.ndarray) -> PyTree:
        parts = []
        for number in range(self.reader.num_blocks):
            inside = index[index // self.block == number] - number * self.block
            if len(inside):
                rows = self.reader.read(number)
                parts.append(
                    jax.tree_util.tree_map(lambda leaf, i=inside: leaf[i], rows)
                )
        return jax.tree_util.tree_map(lambda *some: np.concatenate(some), *parts)


class BlockReader:
    """Reads blocks of equal size, the next one while the last is in use.

    Attributes:
        like: Shapes and dtypes of a block.
        num_blocks: How many there are.

    Args:
        source: Where the rows come from.
        block: Rows of a block; the last one is filled with copies of the last row.
        memory: Bytes in which blocks may be kept.
    """

    def __init__(self, source: AbstractRowSource, block: int, memory: int):
        self.source, self.block = source, block
        self.num_blocks = -(-source.num_rows // block)
        self.like = jax.tree_util.tree_map(
            lambda row: jax.ShapeDtypeStruct(
                (block, *row.shape), jax.dtypes.canonicalize_dtype(row.dtype)
            ),
            source.row,
        )
        leaves = jax.tree_util.tree_leaves(self.like)
        size = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)
        # Blocks are used in turn, so that of those kept the first are as good as any.
        self._num_kept = memory // max(size, 1)
        self._kept: dict[int, PyTree] = {}
        self._ahead: dict[int, Future] = {}
        self._last = -1
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "softcvi-rows")

    def read(self, number: Any) -> PyTree:
        """One block, as arrays of NumPy.

        Args:
            number: Its number.
        """
        number = int(number)
        with self._lock:
            block = self._kept.get(number)
            future = self._asked(number) if block is None else None
            # Gradients go through the blocks backwards.
            step = -1 if number == self._last - 1 else 1
            self._last = number
            self._ask_ahead((number + step) % self.num_blocks)
        if future is not None:
            block = future.result()
            with self._lock:
                self._ahead.pop(number, None)
                if number < self._num_kept:
                    self._kept[number] = block
        return block

    def _asked(self, number: int) -> Future:
        if number not in self._ahead:
            self._ahead.clear()  # the order was another one
            self._ahead[number] = self._thread.submit(self._read, number)
        return self._ahead[number]

    def _ask_ahead(self, number: int) -> None:
        if number not in self._kept and number not in self._ahead:
            self._ahead[number] = self._thread.submit(self._read, number)

    def _read(self, number: int) -> PyTree:
        start = number * self.block
        stop = min(start + self.block, self.source.num_rows)
        rows = self.source.read(start, stop)
        missing = self.block - (stop - start)

        def as_declared(leaf: np.ndarray, like: jax.ShapeDtypeStruct) -> np.ndarray:
            leaf = np.asarray(leaf, like.dtype)
            return np.concatenate([leaf, *[leaf[-1:]] * missing]) if missing else leaf

        return jax.tree_util.tree_map(as_declared, rows, self.like)
