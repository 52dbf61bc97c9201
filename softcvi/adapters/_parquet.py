"""Rows of Parquet files."""

import os
from typing import Any

import jax
import numpy as np

from softcvi.adapters._extras import require
from softcvi.targets import AbstractRowSource
from softcvi.targets._source import check_unpacked, named


class ParquetRows(AbstractRowSource):
    """Columns of a Parquet file, read in blocks by pyarrow.

    Args:
        path: The file.
        columns: Names of columns by the name that the model uses: one name for a
            vector, a list of names for a matrix. By default every column by its own.

    Example:
        >>> import tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq
        >>> from softcvi.adapters import ParquetRows
        >>> path = f"{tempfile.mkdtemp()}/rows.parquet"
        >>> pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), path)
        >>> ParquetRows(path, {"x": ["a", "b"], "y": "a"}).read(0, 2)["x"].tolist()
        [[1.0, 3.0], [2.0, 4.0]]
    """

    def __init__(
        self,
        path: str | os.PathLike,
        columns: dict[str, str | list[str]] | None = None,
    ):
        parquet = require("pyarrow.parquet", "rows")
        self.path = os.fspath(path)
        with named(f"path: {self.path} is not a whole Parquet file"):
            self.file = parquet.ParquetFile(self.path)
            schema = self.file.schema_arrow
            types = dict(zip(schema.names, schema.types, strict=True))
        self.columns = {name: name for name in types}
        if columns is not None:
            self.columns = dict(columns)
        self.needed = sorted({c for name in self.columns for c in self._parts(name)})
        unknown = [c for c in self.needed if c not in types]
        if unknown:
            raise ValueError(
                f"columns: {', '.join(unknown)} not in {self.path}; it has "
                f"{', '.join(types)}."
            )
        dtypes = {c: _dtype_of(types[c]) for c in self.needed}
        odd = [c for c in self.needed if not np.issubdtype(dtypes[c], np.number)]
        if odd:
            raise ValueError(
                f"columns: {', '.join(odd)} in {self.path} must hold numbers. Turn "
                "categories into numbers first."
            )
        counts = [
            self.file.metadata.row_group(i).num_rows
            for i in range(self.file.num_row_groups)
        ]
        # A column of equal numbers takes a few bytes in the file, however long it is.
        row_bytes = sum(np.dtype(dtypes[c]).itemsize for c in self.needed)
        check_unpacked(
            f"the rows of a row group of {self.path}",
            max(counts, default=0) * row_bytes,
            os.path.getsize(self.path),
            "Write it again with smaller groups: pyarrow.parquet.write_table(table, "
            "path, row_group_size=100_000).",
        )
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.num_rows = int(self.starts[-1])
        self.row = {
            name: jax.ShapeDtypeStruct(
                (len(value),) if isinstance(value, list) else (),
                np.result_type(*(dtypes[c] for c in self._parts(name))),
            )
            for name, value in self.columns.items()
        }

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        end = int(np.searchsorted(self.starts, stop, side="left"))
        with named(f"path: rows {start} to {stop} of {self.path} cannot be read"):
            table = self.file.read_row_groups(list(range(first, end)), self.needed)
            table = table.slice(start - int(self.starts[first]), stop - start)
            arrays = {c: table.column(c).to_numpy() for c in self.needed}
        return {
            name: np.stack([arrays[c] for c in value], axis=1)
            if isinstance(value, list)
            else arrays[value]
            for name, value in self.columns.items()
        }

    def _parts(self, name: str) -> list[str]:
        value = self.columns[name]
        return value if isinstance(value, list) else [value]


def _dtype_of(kind: Any) -> Any:
    """How NumPy holds numbers of an Arrow type; ``object`` where it holds none."""
    try:
        return kind.to_pandas_dtype()
    except NotImplementedError:
        return object
