"""Rows of Zarr arrays."""

import os
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from softcvi.adapters._extras import require
from softcvi.targets import AbstractRowSource
from softcvi.targets._source import named


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

    def read(self, start: int, stop: int) -> PyTree:
        with named(f"path: rows {start} to {stop} of {self.path} cannot be read"):
            return jax.tree_util.tree_map(
                lambda array: np.asarray(array[start:stop]), self.arrays
            )
