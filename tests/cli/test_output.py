"""What is printed, wherever it comes from and wherever it goes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softcvi.cli import main
from softcvi.cli._terminal import visible
from softcvi.report import FitView, save_fit

# Clears the screen, sets the title, turns text around; the last is ESC [ in one byte.
HOSTILE = "a\x1b[2J\x1b]0;title\x07\r\u202eb\x9b31m\x7f"
SHOWN = r"a\x1b[2J\x1b]0;title\x07\r\u202eb\x9b31m\x7f"
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def test_control_characters_are_shown_and_not_obeyed():
    assert visible(HOSTILE) == SHOWN
    assert visible("ß\t日本\n") == "ß\t日本\n"


def test_a_strangers_results_do_not_reach_the_terminal(tmp_path, capsys):
    example = FitView.example()
    columns = {HOSTILE: example.columns["mu"]}
    told = {"columns": columns, "name": HOSTILE, "posterior": HOSTILE}
    save_fit(FitView(**(vars(example) | told)), tmp_path)
    path = tmp_path / "result.json"
    told = json.loads(path.read_text())
    told |= {"level": HOSTILE, "reasons": [HOSTILE]}
    path.write_text(json.dumps(told))
    assert main(["report", str(tmp_path)]) == 0
    assert not set("\x1b\x07\r\x9b\u202e") & set("".join(capsys.readouterr()))


@pytest.mark.parametrize("text", ["raise ValueError({!r})", "import warnings\n{}"])
def test_messages_of_a_model_do_not_reach_the_terminal(tmp_path, capsys, text):
    warning = f"warnings.warn({HOSTILE!r})"
    text = text.format(HOSTILE if "raise" in text else warning)
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    assert main(["fit", str(tmp_path / "model.py"), "--out", str(out)]) != 0
    error = capsys.readouterr().err
    assert not set("\x1b\x07\r\x9b\u202e") & set(error)
    assert SHOWN.partition(r"\r")[0] in error


def test_a_folder_that_was_removed_is_named(monkeypatch, capsys):
    def gone():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", gone)
    assert main(["report", "fits"]) == 2
    assert "the current folder is not there any more" in capsys.readouterr().err


def run(words: str) -> subprocess.CompletedProcess:
    command = f"{sys.executable} -m softcvi {words}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True)


@ON_POSIX
def test_closed_streams_are_no_failure():
    assert run("completion fish >&-").returncode == 0
    done = run("report nowhere 2>&-")
    # Nor do errors turn up among the results.
    assert (done.returncode, done.stdout) == (2, "")


@ON_POSIX
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_for_the_output_is_one_line():
    done = run("completion fish >/dev/full")
    assert done.returncode == 1
    line = "softcvi completion: standard output: no space left on device\n"
    assert done.stderr == line
