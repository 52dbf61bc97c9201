"""The record store: provenance, several writers, and lines cut short."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from softcvi.sweeps import RecordStore

_WRITER = """
import sys
from softcvi.sweeps import RecordStore
store = RecordStore(sys.argv[1])
for i in range(40):
    store.add([{"writer": sys.argv[2], "run": i, "text": "x" * 5000}])
"""


def test_records_say_what_made_them(tmp_path):
    store = RecordStore(tmp_path)
    store.add([{"run": 0, "score": float("inf")}])
    [record] = store.all()
    assert record["score"] is None
    made = record["made"]
    assert made["softcvi"]
    assert made["jax"]
    assert {"commit", "command", "date", "processor", "cores"} <= set(made)


def test_two_processes_write_to_one_file(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), name])
        for name in "ab"
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    records = RecordStore(tmp_path).all()
    assert len(records) == 80
    for name in "ab":
        assert [r["run"] for r in records if r["writer"] == name] == list(range(40))


def test_a_line_cut_short_is_ignored_and_replaced(tmp_path):
    store = RecordStore(tmp_path)
    store.add([{"run": 0}])
    with store.path.open("a") as file:
        file.write('{"run": 1, "sco')
    assert [r["run"] for r in RecordStore(tmp_path).all()] == [0]
    store.add([{"run": 2}])
    assert [r["run"] for r in store.all()] == [0, 2]
    assert all(json.loads(line) for line in store.path.read_text().splitlines())


def test_a_broken_line_is_named(tmp_path):
    (Path(tmp_path) / "records.jsonl").write_text('{"run": 0}\nnot json\n')
    with pytest.raises(ValueError, match="not JSON"):
        RecordStore(tmp_path).all()


def test_committed_records_can_be_read():
    results = Path(__file__).parents[2] / "results"
    folders = [path.parent for path in results.rglob("records.jsonl")]
    assert folders
    for folder in folders:
        assert RecordStore(folder).all()


def test_pages_of_the_zoo_are_those_of_their_records():
    from softcvi_experiments.zoo import zoo_page
    from softcvi_experiments.zoo._bench import IDENTITY

    zoo = Path(__file__).parents[2] / "results" / "zoo"
    for page in zoo.rglob("zoo.md"):
        records = RecordStore(page.parent).latest(*IDENTITY)
        assert page.read_text() == zoo_page(records)
