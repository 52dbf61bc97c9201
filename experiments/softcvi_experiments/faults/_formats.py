"""Every kind of file that is read: a good one, and how it is read."""

import contextlib
import functools
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import zarr

import softcvi
from softcvi.adapters import AskTellSession, ParquetRows, ZarrRows
from softcvi.adapters.stan import read_data
from softcvi.cli import main
from softcvi.report import FitView, read_fit, save_fit
from softcvi.sweeps import Grid, RecordStore
from softcvi.targets import AbstractRowSource, NpyRows
from softcvi_experiments.store import DrawStore

_MODEL = "def log_prob(theta, data):\n    return 0.0\n"
_R_DUMP = """N <- 3L
y <- c(1.5, -2, 3e1)
x <- structure(c(1L, 2L, 3L, 4L), .Dim = c(2L, 2L))
days <- 1:20
none <- integer(0)
"""
_GRID = """models: [a.py:model, b.stan]
data: [first.json]
guides: [auto, full-rank]
objectives: [softcvi, elbo]
particles: [8, 32]
alphas: [0.75, 1.0]
seeds: 5
steps: 10000
"""


class Refused(Exception):
    """A command ended with a message."""


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        file: Name of the file inside its folder.
        make: Writes a good one into a folder.
        read: Reads it from there; what it raises is what a user sees.
    """

    file: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]


def _density(x: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(x**2)


@functools.cache
def _target() -> softcvi.DensityTarget:
    return softcvi.DensityTarget(_density, jnp.zeros(2))


def _save_posterior(folder: Path) -> None:
    guide = softcvi.guides.full_rank(_target())
    softcvi.Posterior(guide, _target()).save(folder / "fit.softcvi")


def _save_flow(folder: Path) -> None:
    guide = softcvi.guides.spline_flow(_target(), key=jax.random.key(0), layers=1)
    softcvi.Posterior(guide, _target()).save(folder / "fit.softcvi")


def _load_posterior(folder: Path) -> None:
    # Drawing compiles another program for each file; shapes are checked by load.
    softcvi.load(folder / "fit.softcvi")


def _fit_with_checkpoint(folder: Path) -> None:
    softcvi.fit(
        jax.random.key(0),
        _target(),
        _guide(),
        steps=2,
        start=None,
        progress=False,
        checkpoint=folder / "fit.checkpoint",
    )


@functools.cache
def _guide() -> softcvi.guides.AbstractGuide:
    return softcvi.guides.mean_field(_target())


def _session(folder: Path) -> AskTellSession:
    path = folder / "session.softcvi"
    return AskTellSession(jax.random.key(0), _guide(), budget=8, steps=1, path=path)


def _save_session(folder: Path) -> None:
    session = _session(folder)
    session.ask(4)
    session.tell(np.arange(4.0))
    session.ask(2)


def _read_session(folder: Path) -> None:
    session = _session(folder)
    session.ask(1)
    session.importance()


def _save_fit(folder: Path) -> None:
    save_fit(FitView.example(), folder)


def _run(*words: str | Path) -> None:
    """A command; its message is raised."""
    errors, output = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(output):
        code = main([str(word) for word in words])
    if code:
        raise Refused(errors.getvalue())


def _fit_with_data(ending: str, folder: Path) -> None:
    """``softcvi fit`` up to where the data are read: the model lacks its ``like``."""
    model = folder / "model.py"
    model.write_text(_MODEL)
    words = ("--data", folder / f"data{ending}", "--out", folder / "out")
    try:
        _run("fit", f"{model}:log_prob", "--kind", "density", *words)
    except Refused as error:
        if "read as a log density" not in str(error):
            raise


def _report_with_reference(folder: Path) -> None:
    """``softcvi report`` up to where the draws are read: the folder holds no fit."""
    try:
        _run("report", folder / "none", "--reference", folder / "draws.csv")
    except Refused as error:
        if "holds no result.json" not in str(error):
            raise


def _write(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)


_VALUES = {"N": 3, "y": [1.5, -2.0, 3.0], "x": [[1, 2], [3, 4]], "name": "text"}


def _npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, N=np.array(3), y=np.arange(3.0), x=np.ones((2, 2), int))
    return buffer.getvalue()


def _zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", json.dumps(_VALUES))
    return buffer.getvalue()


def _add_records(folder: Path) -> None:
    records = ({"id": str(i), "status": "finished", "khat": 0.1 * i} for i in range(3))
    RecordStore(folder).add(records)


def _read_records(folder: Path) -> None:
    store = RecordStore(folder)
    store.all()
    store.identifiers()


_ROWS = np.arange(60.0).reshape(20, 3)


def _save_parquet(folder: Path) -> None:
    table = pyarrow.table({"a": _ROWS[:, 0], "b": _ROWS[:, 1]})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")


def _save_zarr(folder: Path) -> None:
    rows: Any = _ROWS
    zarr.save_array(folder / "rows.zarr", rows)


def _read_rows(source: AbstractRowSource) -> None:
    source.read(0, 7)
    source.read(7, 20)


def _written(name: str, content: bytes) -> Callable[[Path], object]:
    return functools.partial(_write, name, content)


def _data(ending: str, content: bytes) -> Format:
    name = f"data{ending}"
    return Format(
        name, _written(name, content), functools.partial(_fit_with_data, ending)
    )


def _stan(name: str, content: bytes) -> Format:
    return Format(name, _written(name, content), lambda at: read_data(at / name))


_JSON = json.dumps(_VALUES).encode()
_CSV = b"N,y,group\n1,1.5,a\n2,-2.0,b\n3,3e1,c\n"
_IDENTITY = {"task": "slcp", "run": 0}
FORMATS: dict[str, Format] = {
    "posterior": Format("fit.softcvi", _save_posterior, _load_posterior),
    "posterior of a flow": Format("fit.softcvi", _save_flow, _load_posterior),
    "checkpoint": Format(
        "fit.checkpoint", _fit_with_checkpoint, _fit_with_checkpoint
    ),
    "ask/tell session": Format("session.softcvi", _save_session, _read_session),
    "records of a sweep": Format("records.jsonl", _add_records, _read_records),
    "records of experiments": Format(
        "records.jsonl",
        lambda at: RecordStore(at).add({"run": i} for i in range(3)),
        lambda at: RecordStore(at).all(),
    ),
    "draws of experiments": Format(
        "draws",
        lambda at: DrawStore(at).put(_IDENTITY, {"x": np.zeros((3, 2))}),
        lambda at: DrawStore(at).get(_IDENTITY),
    ),
    "result.json": Format("result.json", _save_fit, read_fit),
    "draws.csv": Format("draws.csv", _save_fit, read_fit),
    "reference draws": Format(
        "draws.csv", _written("draws.csv", b"a[0],a[1],b\n1,2,3\n4,5,6\n"),
        _report_with_reference,
    ),
    "data, JSON": _data(".json", _JSON),
    "data, CSV": _data(".csv", _CSV),
    "data, NPZ": _data(".npz", _npz()),
    "Stan data, R dump": _stan("data.R", _R_DUMP.encode()),
    "Stan data, JSON": _stan("data.json", _JSON),
    "Stan data, zipped": _stan("data.json.zip", _zipped()),
    "Stan data, gzipped": _stan("data.json.gz", gzip.compress(_JSON, mtime=0)),
    "rows in .npy": Format(
        "rows.npy", lambda at: np.save(at / "rows.npy", _ROWS),
        lambda at: _read_rows(NpyRows(at / "rows.npy")),
    ),
    "rows in Parquet": Format(
        "rows.parquet", _save_parquet,
        lambda at: _read_rows(ParquetRows(at / "rows.parquet")),
    ),
    "rows in Zarr": Format(
        "rows.zarr/zarr.json", _save_zarr,
        lambda at: _read_rows(ZarrRows(at / "rows.zarr")),
    ),
    "grid of a sweep": Format(
        "grid.yaml", _written("grid.yaml", _GRID.encode()),
        lambda at: Grid.read(at / "grid.yaml").configurations(),
    ),
}  # fmt: skip
