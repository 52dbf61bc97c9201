"""Rows from files: the same density as from memory, read once and ahead of use."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.targets import AbstractRowSource, DataTarget, NpyRows
from softcvi.targets._source import BlockReader

ROWS = 1003


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3))
    y = x @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=ROWS)
    return {"x": x.astype(np.float32), "y": y.astype(np.float32)}


def saved_as_npy(folder):
    for name, value in data().items():
        np.save(folder / f"{name}.npy", value)
    return NpyRows({name: folder / f"{name}.npy" for name in ("x", "y")})


def saved_as_parquet(folder):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"x{i}": data()["x"][:, i] for i in range(3)} | {"y": data()["y"]}
    parquet.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=170)
    names = {"x": ["x0", "x1", "x2"], "y": "y"}
    return softcvi.adapters.ParquetRows(folder / "rows.parquet", names)


def saved_as_zarr(folder):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder / "rows.zarr", mode="w")
    for name, value in data().items():
        group[name] = value
    return softcvi.adapters.ZarrRows(folder / "rows.zarr")


def regression(rows, **options):
    return DataTarget(
        lambda b: -0.5 * jnp.sum(b**2),
        lambda b, part: -0.5 * (part["y"] - part["x"] @ b) ** 2,
        jnp.zeros(3, jnp.float32),
        data=rows,
        reference=jnp.array([1.0, -1.0, 0.5], jnp.float32),
        **options,
    )


@eqx.filter_jit
def values_and_gradients(target, points):
    return jax.vmap(jax.value_and_grad(target.log_density))(points)


@pytest.mark.parametrize("save", [saved_as_npy, saved_as_parquet, saved_as_zarr])
def test_every_kind_of_file_gives_the_density_of_the_arrays(save, tmp_path):
    points = jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)), jnp.float32)
    streamed = regression(save(tmp_path), block=100, memory=0)
    assert streamed.num_rows == ROWS
    for found, expected in zip(
        values_and_gradients(streamed, points),
        values_and_gradients(regression(data()), points),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    index = np.array([0, 99, 100, ROWS - 1])
    taken = streamed.rows.take(index)
    np.testing.assert_allclose(taken["x"], data()["x"][index])


class Counted(AbstractRowSource):
    """Numbers from zero, which remembers what was read, and in which thread."""

    num_rows = 10
    row = jax.ShapeDtypeStruct((), np.float32)

    def __init__(self):
        self.starts, self.threads = [], set()

    def read(self, start, stop):
        self.starts.append(start)
        self.threads.add(threading.current_thread().name)
        return np.arange(start, stop, dtype=np.float32)


def test_blocks_are_read_ahead_and_kept_as_far_as_memory_allows():
    source = Counted()
    reader = BlockReader(source, 4, memory=2 * 4 * 4)
    assert reader.num_blocks == 3
    for _ in range(3):
        blocks = [reader.read(number) for number in range(3)]
    # The last one is filled up with copies of the last row.
    np.testing.assert_array_equal(np.concatenate(blocks), [*range(10), 9, 9])
    assert (source.starts.count(0), source.starts.count(4)) == (1, 1)
    assert source.starts.count(8) == 3
    assert all("softcvi-rows" in name for name in source.threads)
    assert source.starts[:2] == [0, 4]


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_backwards_each_block_is_read_once_for_a_pass(memory):
    source = Counted()
    reader = BlockReader(source, 2, memory=memory)
    for number in [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]:
        reader.read(number)
    assert len(source.starts) <= 12


def test_damaged_and_odd_files_are_refused(tmp_path):
    source = saved_as_parquet(tmp_path)
    whole = (tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"path: .*may be truncated"):
        softcvi.adapters.ParquetRows(tmp_path / "half.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"z": ["a", "b"]})
    table = table.set_column(0, "z", table["z"].dictionary_encode())
    parquet.write_table(table, tmp_path / "words.parquet")
    with pytest.raises(ValueError, match=r"columns: z in .* must hold numbers"):
        softcvi.adapters.ParquetRows(tmp_path / "words.parquet")
    with pytest.raises(ValueError, match="columns: z not in"):
        softcvi.adapters.ParquetRows(source.path, {"x": "z"})
    saved_as_npy(tmp_path)
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "half.npy").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"paths: .* is not a whole \.npy file"):
        NpyRows(tmp_path / "half.npy")
    np.save(tmp_path / "short.npy", np.zeros(3))
    with pytest.raises(ValueError, match="paths: all files need equally many rows"):
        NpyRows([tmp_path / "x.npy", tmp_path / "short.npy"])


class Damaged(Counted):
    def read(self, start, stop):
        if start >= 4:
            raise ValueError("path: rows 4 to 8 cannot be read")
        return super().read(start, stop)


def test_rows_that_cannot_be_read_end_the_fit_with_their_message():
    target = DataTarget(
        lambda t: -0.5 * t**2,
        lambda t, x: -0.5 * (x - t) ** 2,
        jnp.zeros((), jnp.float32),
        data=Damaged(),
        block=4,
    )
    with pytest.raises(softcvi.FitError, match="rows 4 to 8 cannot be read"):
        softcvi.fit(jax.random.key(0), target, steps=10, progress=False)
