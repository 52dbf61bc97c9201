"""Records are added all or none, wherever a process is killed while it writes."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from softcvi.sweeps import RecordStore, append_records, read_records
from softcvi.sweeps._provenance import _commit


def test_a_batch_that_was_cut_off_anywhere_is_not_there(tmp_path):
    # Runs of one program are repeated together: in a smaller one sums round otherwise.
    path = tmp_path / "records.jsonl"
    append_records(path, [{"run": 0}])
    before = path.read_bytes()
    append_records(path, [{"run": run} for run in (1, 2, 3)])
    whole = path.read_bytes()
    for size in range(len(before), len(whole)):
        path.write_bytes(whole[:size])
        assert [r["run"] for r in read_records(path)] == [0]
    append_records(path, [{"run": 4}])
    assert read_records(path) == [{"run": 0}, {"run": 4}]
    append_records(path, [{"run": run} for run in (5, 6)])
    assert [r["run"] for r in read_records(path)] == [0, 4, 5, 6]


def test_records_come_back_as_they_were_given(tmp_path):
    store = RecordStore(tmp_path)
    store.add([{"id": "a", "x": np.float32(np.inf)}, {"id": "b", "x": np.int64(2)}])
    found = [{k: r[k] for k in ("id", "x")} for r in store.all()]
    assert found == [{"id": "a", "x": None}, {"id": "b", "x": 2}]
    assert not any("of_batch" in record for record in store.all())


@pytest.mark.parametrize(
    "mark", [[5, 9], [10**18, 10**19], [-1, 3], "text", [None, 2], [2, 1], {}, 7]
)
def test_a_damaged_mark_loses_no_other_record_than_those_it_names(tmp_path, mark):
    path = tmp_path / "records.jsonl"
    lines = [{"run": 0}, {"run": 1, "of_batch": mark}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = [r["run"] for r in read_records(path)]
    assert found in ([0, 1], [])
    assert (found == []) == (mark in ([5, 9], [10**18, 10**19]))


def test_a_full_disk_names_the_file_and_leaves_what_was_there(tmp_path, monkeypatch):

    path = tmp_path / "records.jsonl"
    append_records(path, [{"run": 0}])

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*records\.jsonl"):
        append_records(path, [{"run": 1}])
    monkeypatch.undo()
    assert read_records(path) == [{"run": 0}]


def test_a_folder_that_has_vanished_is_made_again(tmp_path):
    store = RecordStore(tmp_path / "sweep")
    store.folder.rmdir()
    store.add([{"id": "a"}])
    assert store.identifiers() == {"a"}


def test_the_commit_is_read_without_writing_to_the_repository(tmp_path, monkeypatch):
    """Killed, or on a full disk, git left ``index.lock`` behind: no commit any more."""
    if shutil.which("git") is None:
        pytest.skip("needs git")

    monkeypatch.delenv("SOFTCVI_COMMIT", raising=False)

    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)

    file = tmp_path / "file.py"
    file.write_text("text")
    git("init", "-q")
    assert _commit(tmp_path) is None
    git("add", ".")
    git("commit", "-q", "-m", "first")
    os.utime(file, (0, 0))  # git would refresh what it knows of the file
    before = (tmp_path / ".git" / "index").read_bytes()
    first = _commit(tmp_path)
    assert len(first) == 10
    assert (tmp_path / ".git" / "index").read_bytes() == before
    file.write_text("other")
    assert _commit(tmp_path) == f"{first}+"
