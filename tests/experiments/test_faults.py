"""The fault suite in small, and files that once were not refused by name."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from softcvi_experiments.faults import Faults, faults_page
from softcvi_experiments.faults._files import read_damaged
from softcvi_experiments.faults._formats import FORMATS
from softcvi_experiments.faults._mutate import mutated, payloads
from softcvi_experiments.faults._suite import _FORMATS


def _zip(content, how=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        archive.writestr("data.json", content)
    return buffer.getvalue()


def _npy(shape, dtype="<f8"):
    """The header of an array, and not one number."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}"
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _npz(shape, dtype="<f8"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("y.npy", _npy(shape, dtype))
    return buffer.getvalue()


def _merges():
    """References that stand for nine to the power of nine values."""
    lines = ["a: &a {x: 1}"]
    for old, new in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 9)}]}}")
    return "\n".join(lines).encode()


# Each of them ended in an error without file or remedy, or took the memory.
CORPUS = [
    ("data, JSON", json.dumps({"y": ["a" * 10**6, *["b"] * 500]}).encode()),
    ("data, CSV", b"x\n" + b"a" * 100_000 + b"\n" + b"b\n" * 1000),
    ("data, NPZ", _npz("(1000000000, 0)")),
    ("data, NPZ", _npz("(10000000000,)", "|V0")),
    ("rows in .npy", _npz("(3,)")),
    ("rows in .npy", _npy("(1000000000000,)", "|V0")),
    ("grid of a sweep", _merges()),
    ("grid of a sweep", b"models: [a.py]\nseeds: 9999999\n"),
    ("Stan data, R dump", b"x <- structure(integer(0), .Dim = c(999999999L, 0L))"),
    ("Stan data, R dump", b"x <- 1:9999999"),
    ("reference draws", b"a[0],a[1],b\nx,2,3\ny,5,6\n"),
    ("reference draws", b"a[0],a[1],b\n1,[,3\n4,5,6\n"),
    ("records of a sweep", b"[1]\n"),
    ("records of a sweep", b"[" * 100_000 + b"\n"),
    ("records of a sweep", b"\xff\xfe\n"),
    ("records of experiments", b'"text"\n'),
    ("records of experiments", b"\xff\n"),
    ("draws of experiments", b"not a zip"),
    ("grid of a sweep", b"models: 2001-99-99\n"),
    ("grid of a sweep", b"models: [a.py]\nparticles: 0\n"),
    ("grid of a sweep", b"models: [a.py]\nseeds: null\n"),
    ("grid of a sweep", b"models: [a.py]\nsteps: [1, 2]\n"),
    ("grid of a sweep", b"models: [[a.py]]\n"),
    ("grid of a sweep", b"models: [a.py]\nseeds: 1000000000000\n"),
    ("grid of a sweep", b"models: [a.py]\nseeds: 1" + b"0" * 40 + b"\n"),
    ("grid of a sweep", b"[" * 5000),
    ("Stan data, R dump", b"x <- 1:1000000000000"),
    ("Stan data, R dump", b"x <- integer(1000000000000)"),
    ("Stan data, R dump", b"x <- integer(-1)"),
    ("Stan data, R dump", b"x <- structure(c(1, 2), .Dim = c(3L, 5L))"),
    ("Stan data, R dump", b"x <- " + b"c(" * 20_000),
    ("Stan data, R dump", b"x <- c(1, \xff)"),
    ("Stan data, R dump", b"x <- 1:Inf"),
    ("Stan data, JSON", b"[" * 100_000),
    ("Stan data, JSON", b"[1, 2]"),
    ("Stan data, zipped", b"not a zip"),
    ("Stan data, zipped", _zip(b"")[:-10]),
    ("Stan data, zipped", _zip(b" " * (2**26 + 2))),
    ("Stan data, gzipped", gzip.compress(b"{}", mtime=0)[:-6]),
    ("Stan data, gzipped", gzip.compress(b" " * (2**26 + 2), mtime=0)),
    ("data, JSON", b'{"x": [1, [2]]}'),
    ("data, JSON", b"1"),
]


@pytest.mark.parametrize(("name", "content"), CORPUS)
def test_files_that_once_failed_are_refused_by_name(tmp_path, name, content):
    form = FORMATS[name]
    path = tmp_path / form.file
    if name == "draws of experiments":
        form.make(tmp_path)
        path = next(path.iterdir())
    path.write_bytes(content)
    with pytest.raises(Exception, match=path.name) as caught:
        form.read(tmp_path)
    text = " ".join(str(caught.value).split())
    assert ". " in text or "; " in text  # a remedy follows the reason
    assert "--traceback" not in text


def test_a_damaged_session_is_refused_by_name(tmp_path):
    task = {"format": "ask/tell session", "seed": 10, "count": 15}
    found = read_damaged(task)
    assert found["ok"], found["cases"]


@pytest.mark.parametrize("number", [10**30, -1])
def test_a_session_whose_next_point_has_no_number_is_refused(tmp_path, number):
    form = FORMATS["ask/tell session"]
    form.make(tmp_path)
    path = tmp_path / form.file
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    header["facts"]["next_id"] = number
    members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"session\.softcvi holds no session"):
        form.read(tmp_path)


def test_an_index_of_thousands_of_digits_is_a_name_like_any_other(tmp_path):
    index = "9" * 5000
    (tmp_path / "draws.csv").write_text(f"a[{index}]\n1\n")
    FORMATS["reference draws"].read(tmp_path)


@pytest.mark.parametrize(
    "facts",
    [
        {"shape": [20, 10**9], "chunks": [20, 10**9]},
        {"shape": [20, 10**6], "chunks": [1, 1]},
        {"shape": [20, 3], "chunks": [20, 10**10]},
    ],
)
def test_a_zarr_array_without_numbers_does_not_fill_the_memory(tmp_path, facts):
    form = FORMATS["rows in Zarr"]
    form.make(tmp_path)
    path = tmp_path / form.file
    stored = json.loads(path.read_text())
    stored["shape"] = facts["shape"]
    stored["chunk_grid"]["configuration"]["chunk_shape"] = facts["chunks"]
    path.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=r"rows\.zarr.* Write it again"):
        form.read(tmp_path)


def test_equal_numbers_in_parquet_do_not_fill_the_memory(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("softcvi.targets._source.SMALL_BYTES", 2**20)
    table = pa.table({"a": np.zeros(10**6)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=10**6)
    read = FORMATS["rows in Parquet"].read
    with pytest.raises(ValueError, match=r"rows\.parquet.*row_group_size"):
        read(tmp_path)
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=10**5)
    read(tmp_path)


@pytest.mark.parametrize("ending", [".nc", ".parquet"])
def test_data_of_other_kinds_are_refused_with_what_to_do(tmp_path, ending):
    from softcvi.cli._data import read_data
    from softcvi.cli._errors import CommandError

    path = tmp_path / f"data{ending}"
    path.write_bytes(b"CDF")
    with pytest.raises(CommandError, match=rf"data\{ending}: unknown.* Write it as"):
        read_data(path)


def test_blocks_of_wide_rows_are_short():
    from softcvi.targets import AbstractRowSource
    from softcvi.targets._rows import default_block

    class Wide(AbstractRowSource):
        num_rows = 10**6
        row = np.zeros(2**20)

        def read(self, start, stop):
            return np.zeros((stop - start, 2**20))

    assert default_block(Wide()) == 32


def test_arrays_of_another_byte_order_are_read(tmp_path):
    np.savez(tmp_path / "data.npz", y=np.arange(3.0).astype(">f8"))
    FORMATS["data, NPZ"].read(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "result.json",
        "records of a sweep",
        "data, CSV",
        "rows in .npy",
        "rows in Parquet",
        "rows in Zarr",
    ],
)
def test_damage_is_repeatable_and_refused_by_name(name):
    found = read_damaged({"format": name, "seed": 0, "count": 25})
    assert found["ok"], found["cases"]
    assert found["loaded"] + found["named"] == 25


def test_the_canary_notices_what_is_executed(tmp_path):
    import pickle

    canary = tmp_path / "canary"
    pickle.loads(payloads(str(canary))[0]).close()
    assert canary.exists()


def test_damage_depends_on_the_seed_alone():
    content = _zip(json.dumps({"a": [1, 2]}))
    first = [mutated(seed, content, "x") for seed in range(20)]
    assert first == [mutated(seed, content, "x") for seed in range(20)]
    assert len(set(first)) > 15


def test_the_suite_covers_every_format_with_as_many_files_as_asked_for():
    assert set(_FORMATS) == set(FORMATS)
    tasks = Faults(parts=("files",), files=20_000).tasks()
    assert sum(task["count"] for task in tasks) >= 20_000


def test_the_page_counts_what_did_not_hold():
    made = {"date": "2026-01-01T00:00", "softcvi": "1", "jax": "2", "commit": "c"}
    made["cores"] = 2
    kills = [
        {"part": "kills", "case": "fit", "ok": True, "equal": True, "made": made},
        {"part": "kills", "case": "fit", "ok": False, "equal": False, "made": made},
    ]
    page = faults_page(kills)
    row = next(line for line in page.splitlines() if "`fit`" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == ["2", "1", "1", "0", "0"]


KILLED = """
import os, signal, sys
from softcvi._atomic import atomic_write

with atomic_write(sys.argv[1]) as handle:
    handle.write(b"half")
    handle.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_what_a_killed_writer_leaves_is_removed_by_the_next(tmp_path):
    from softcvi._atomic import atomic_write

    path = tmp_path / "file[1]*"
    path.write_bytes(b"old")
    run = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert run.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    with atomic_write(path) as handle:
        handle.write(b"first")
        # Another writer at the same time is not taken for a dead one.
        with atomic_write(path) as other:
            other.write(b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_stays_a_link(tmp_path):
    from softcvi._atomic import atomic_write

    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    with atomic_write(link) as handle:
        handle.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, make):
    """With the rights of root /dev/null itself was replaced."""
    from softcvi._atomic import atomic_write

    path = tmp_path / "device"
    make(path)
    refused = pytest.raises(OSError, match=r"not a file.*device")
    with refused, atomic_write(path) as handle:
        handle.write(b"content")
    assert not path.is_file()
    assert os.listdir(tmp_path) == ["device"]


def test_a_record_without_its_end_of_line_is_written_again(tmp_path):
    from softcvi.sweeps import RecordStore

    store = RecordStore(tmp_path)
    store.add([{"id": "a"}])
    store.add([{"id": "b"}])
    content = store.path.read_bytes()
    store.path.write_bytes(content[:-1])  # killed just before the end
    assert store.identifiers() == {"a"}
    store.add([{"id": "b"}])
    assert [record["id"] for record in store.all()] == ["a", "b"]
