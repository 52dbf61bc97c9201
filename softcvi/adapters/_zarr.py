"""Rows of Zarr arrays."""

import math
import os
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from softcvi.adapters._extras import require
from softcvi.targets import AbstractRowSource
from softcvi.targets._source import SMALL_BYTES, check_unpacked, named

# Chunks of which each is a file; more for a single row are never meant.
_MAX_CHUNKS_OF_A_ROW = 10_000


class ZarrRows(AbstractRowSource):
    """Arrays of a Zarr store with rows as their first axis, read in blocks.

    Args:
        path: The store: one array, or a group of arrays.
        names: Arrays of the group to use; by default all of them.

    Example:
        >>> import tempfile, numpy as np, zarr
        >>> from softcvi.adapters import ZarrRows
        >>> path = f"{tempfile.mkdtemp()}/rows.zarr"
        >>> group = zarr.open_group(path, mode="w")
        >>> group["x"] = np.arange(6.0).reshape(3, 2)
        >>> ZarrRows(path).read(1, 2)["x"].tolist()
        [[2.0, 3.0]]
    """

    def __init__(self, path: str | os.PathLike, names: list[str] | None = None):
        zarr = require("zarr", "rows")
        self.path = os.fspath(path)
        with named(f"path: {self.path} is not a Zarr array or group"):
            store: Any = zarr.open(self.path, mode="r")
            is_array = hasattr(store, "shape")
            known = [] if is_array else sorted(store.array_keys())
        self.arrays: PyTree = store
        if not is_array:
            unknown = [name for name in names or () if name not in known]
            if unknown or not known:
                raise ValueError(
                    f"names: {', '.join(unknown) or 'no arrays'} in {self.path}; it "
                    f"has {', '.join(known) or 'none'}."
                )
            self.arrays = {name: store[name] for name in names or known}
        for array in jax.tree_util.tree_leaves(self.arrays):
            self._check(array)
        rows = {array.shape[0] for array in jax.tree_util.tree_leaves(self.arrays)}
        if len(rows) != 1:
            raise ValueError(
                f"path: arrays of {self.path} need equally many rows; they have "
                f"{sorted(rows)}. Choose some by names=."
            )
        [self.num_rows] = rows
        self.row = jax.tree_util.tree_map(
            lambda array: jax.ShapeDtypeStruct(array.shape[1:], array.dtype),
            self.arrays,
        )

    def _check(self, array: Any) -> None:
        """Refuse an array that asks for far more memory or time than it has bytes.

        Chunks that are not there stand for equal numbers, so that a few letters can
        describe an array of any size.
        """
        with named(f"path: {self.path} is not a Zarr array or group of numbers"):
            shape, chunks = array.shape, array.chunks
            if array.dtype.kind not in "biufc" or not shape or min(chunks) < 1:
                raise ValueError(f"an array of {array.dtype} with chunks of {chunks}")
            pieces = math.prod(
                -(-n // m) for n, m in zip(shape[1:], chunks[1:], strict=True)
            )
            numbers = max(math.prod(shape[1:]), math.prod(chunks))
            size = numbers * array.dtype.itemsize
            # Counted only where it matters: a store may have millions of files.
            stored = array.nbytes_stored() if size > SMALL_BYTES else 0
        if pieces > _MAX_CHUNKS_OF_A_ROW:
            raise ValueError(
                f"path: a row of {self.path} is cut into {pieces} chunks, more than "
                f"{_MAX_CHUNKS_OF_A_ROW}. Write it again with chunks of whole rows."
            )
        check_unpacked(
            f"the numbers of a row or chunk of {self.path}",
            size,
            stored,
            "Write it again with smaller chunks, and what is missing filled in.",
        )

    def read(self, start: int, stop: int) -> PyTree:
        with named(f"path: rows {start} to {stop} of {self.path} cannot be read"):
            return jax.tree_util.tree_map(
                lambda array: np.asarray(array[start:stop]), self.arrays
            )
