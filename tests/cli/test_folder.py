"""Output folders, models that misbehave, and warnings."""

import os
import signal
import subprocess
import sys
import time

import pytest

from softcvi.cli import CommandError, hold_folder, main
from softcvi.cli._reading import no_silent_end

HOLD = """\
import sys, time
from pathlib import Path
from softcvi.cli import hold_folder

with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_holds_the_folder(density, tmp_path, capsys):
    out = tmp_path / "out"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "held\n"
        assert main(["fit", f"{density}:log_prob", "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert f"--out {out}: is in use by process {child.pid} on " in error
        assert list(out.iterdir()) == [out / ".softcvi.lock"]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    # A killed process leaves its file behind, but not its lock; the next one says so.
    with hold_folder(out):
        pass
    assert f"note: {out}: process {child.pid} on " in capsys.readouterr().err
    assert not (out / ".softcvi.lock").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
def test_a_lock_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / ".softcvi.lock")
    with (
        pytest.raises(CommandError, match="is no file"),
        hold_folder(tmp_path),
    ):
        pass


def test_little_is_read_of_a_lock_that_was_left(tmp_path):
    with (tmp_path / ".softcvi.lock").open("wb") as file:
        file.truncate(2**40)
    with hold_folder(tmp_path):
        pass


def test_a_folder_is_held_once(tmp_path):
    with (
        hold_folder(tmp_path),
        pytest.raises(CommandError, match="in use by process"),
        hold_folder(tmp_path),
    ):
        pass


def test_a_folder_whose_lock_was_deleted_is_still_held(tmp_path):
    with hold_folder(tmp_path):
        (tmp_path / ".softcvi.lock").unlink()
        with pytest.raises(CommandError, match="in use by"), hold_folder(tmp_path):
            pass
    with hold_folder(tmp_path):
        pass


def test_the_lock_of_a_folder_that_took_the_place_stays(tmp_path):
    folder = tmp_path / "out"
    with hold_folder(folder):
        folder.rename(tmp_path / "moved")
        with hold_folder(folder):
            (folder / "result").touch()
        (folder / ".softcvi.lock").touch()
    assert (folder / ".softcvi.lock").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import sys\nsys.exit(0)\n", 2),
        ("import sys\nimport numpyro\ndef model():\n    sys.exit(0)\n", 4),
        ("raise SystemExit\n", 1),
        ("import os\nos._exit(0)\n", 2),
        ("from os import _exit\nimport numpyro\ndef model():\n    _exit(0)\n", 4),
        ("import os, sys\nos.execv(sys.executable, ['python', '-c', ''])\n", 2),
        ("import os\n__import__(os.name)._exit(0)\n", 2),
    ],
)
def test_a_model_that_exits_is_an_error(tmp_path, capsys, text, line):
    (tmp_path / "model.py").write_text(text)
    out = tmp_path / "out"
    end = os._exit
    assert main(["fit", str(tmp_path / "model.py"), "--out", str(out)]) == 1
    assert os._exit is end
    error = capsys.readouterr().err
    call = next((c for c in ("_exit", "execv") if c in text), None)
    call = "sys.exit" if call is None else f"os.{call}"
    assert f"model.py:{line}: " in error
    assert f"Remove the call of {call} from the model." in error
    assert not out.exists()


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(0)",
        "__import__(os.name)._exit(0)",
        "sys.exit(0)",
        "os.execv(sys.executable, [sys.executable, '-c', ''])",
    ],
)
def test_what_a_model_does_at_the_end_keeps_the_exit_code(tmp_path, end):
    """What was registered before it, such as removing temporary files, runs as well."""
    path = tmp_path / "model.py"
    path.write_text(
        "import atexit, os, sys\n"
        "atexit.register(lambda: print('the end'))\n"
        f"atexit.register(lambda: {end})\n"
        "1 / 0\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "softcvi",
            "fit",
            str(path),
            "--out",
            str(tmp_path / "o"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "model.py:4: ZeroDivisionError" in done.stderr
    assert done.stdout == "the end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_end_as_they_always_do():
    with no_silent_end():
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_crash_in_compiled_code_names_the_line(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("import os\nos.abort()\n")
    command = [sys.executable, "-m", "softcvi", "fit", str(path)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert f'"{path}", line 2' in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_ends_an_endless_import_with_one_line(tmp_path):
    ready = tmp_path / "ready"
    (tmp_path / "model.py").write_text(
        f"open({str(ready)!r}, 'w').close()\nwhile True:\n    pass\n"
    )
    command = [sys.executable, "-m", "softcvi", "fit", str(tmp_path / "model.py")]
    child = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A background job ignores Ctrl-C, and so would its child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    output, error = child.communicate(timeout=60)
    assert child.returncode == 130
    assert error == "softcvi fit: interrupted\n"
    assert output == ""
    assert not (tmp_path / "out").exists()


WARNS = """\
import warnings

import jax.numpy as jnp

warnings.warn("the model's own library has doubts")
warnings.warn("for authors", DeprecationWarning)
like = {"x": jnp.zeros(2)}


def log_prob(theta):
    warnings.warn("the model's own library has doubts")
    return gone
"""


def test_warnings_about_the_model_reach_the_user_once(tmp_path, capsys):
    (tmp_path / "model.py").write_text(WARNS)
    model = f"{tmp_path / 'model.py'}:log_prob"
    assert main(["fit", model, "--out", str(tmp_path / "out")]) != 0
    error = capsys.readouterr().err
    assert error.count("warning: the model's own library has doubts\n") == 1
    assert "for authors" not in error
