"""Model files that do not come back: a note, a limit, and a way out for each."""

import signal
import subprocess
import sys
import threading

import pytest

from softcvi.cli import CommandError, main
from softcvi.cli import _reading as reading
from softcvi.cli._reading import limited

ENDLESS = "while True:\n    pass\n"
# Ctrl-C alone cannot end this one.
DEAF = """\
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
# Nor can any thread of Python end this one.
HELD = "import ctypes\nctypes.PyDLL(None).sleep(60)\n"


@pytest.mark.parametrize("command", ["fit", "report", "sweep"])
def test_an_endless_import_ends_at_the_limit(tmp_path, capsys, command, fitted):
    model = tmp_path / "model.py"
    model.write_text(ENDLESS)
    (tmp_path / "grid.yaml").write_text(f"models: ['{model}:model']\nsteps: 10\n")
    out = ["--out", str(tmp_path / "out")]
    words = {
        "fit": ["fit", str(model), *out],
        "report": ["report", *fitted, "--model", str(model)],
        "sweep": ["sweep", str(tmp_path / "grid.yaml"), *out, "--quiet"],
    }
    assert main([*words[command], "--import-limit", "0.2"]) == 1
    told = capsys.readouterr().err
    if command == "sweep":
        told = (tmp_path / "out" / "records.jsonl").read_text()
    assert "model.py:" in told
    assert "was not read within 0.2 s. Mend the file, or give a longer --import" in told


def test_the_limit_holds_in_the_background(tmp_path):
    """A shell starts jobs in the background of a script with SIGINT ignored."""

    def endless():
        with limited(tmp_path / "model.py", 0.2):
            while True:
                pass

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(CommandError, match="was not read within"):
            endless()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def fitted(tmp_path):
    """A folder of a fit without a checksum of its model, and draws to compare with."""
    folder, draws = tmp_path / "fitted", tmp_path / "draws.csv"
    folder.mkdir()
    draws.write_text("x\n" + "1.0\n" * 8)
    (folder / "result.json").write_text("{}")
    return [str(folder), "--reference", str(draws)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
@pytest.mark.parametrize("text", [DEAF, HELD])
def test_code_that_cannot_be_interrupted_ends_with_the_process(tmp_path, text):
    model = tmp_path / "model.py"
    model.write_text(text)
    program = (
        "import runpy, sys\nfrom pathlib import Path\n"
        "from softcvi.cli import _reading as reading\n"
        "reading._GRACE_SECONDS = 0.2\n"
        "path = Path(sys.argv[1])\n"
        "with reading.limited(path, 0.2):\n"
        "    runpy.run_path(str(path))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(model)],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 1
    assert "model.py" in done.stderr


def test_a_long_import_is_announced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reading, "_NOTE_SECONDS", 0.05)
    said = threading.Event()
    tell = reading.tell

    def told(text):
        tell(text)
        said.set()

    monkeypatch.setattr(reading, "tell", told)
    with limited(tmp_path / "model.py", 600.0):
        assert said.wait(60)
    told = capsys.readouterr().err
    assert "model.py is still being read (0.05 s); Ctrl-C ends it" in told


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_limit_that_makes_no_sense_is_refused(tmp_path, seconds):
    with (
        pytest.raises(CommandError, match="--import-limit: must be above 0"),
        limited(tmp_path, seconds),
    ):
        pass
