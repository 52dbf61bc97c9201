"""Output on a pseudo-terminal and in a pipe."""

import io
import os
import re
import signal
import subprocess
import sys

import pytest

from softcvi.cli import main

pexpect = pytest.importorskip("pexpect")
if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

# A fit's reports without its compilation, so that these tests are quick.
REPORTS = """\
import sys
from softcvi.cli._progress import make_reporter
from softcvi.cli._terminal import say_verdict

reporter = make_reporter("--quiet" in sys.argv, "SLCP, ELBO")
reporter.begin("fit", 100)
reporter.update(50, 1234.0, {"excess": 0.1, "label ESS": 5.0})
reporter.update(100, 1234.0, {"excess": 0.05, "label ESS": 6.0})
reporter.end()
say_verdict("caution", "k-hat 0.62", quiet="--quiet" in sys.argv)
print("end")
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][;m]")


def environment(**changes):
    names = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM")
    kept = {k: v for k, v in os.environ.items() if k not in names}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "120", **changes}


def on_terminal(*options, **changes):
    child = pexpect.spawn(
        sys.executable,
        ["-c", REPORTS, *options],
        env=environment(**changes),
        encoding="utf-8",
        dimensions=(24, 120),
        timeout=90,
    )
    text = child.read()
    child.close()
    assert child.exitstatus == 0, text
    return text


def test_a_bar_on_a_terminal():
    text = on_terminal()
    assert "SLCP, ELBO" in text
    assert "100/100" in text
    assert "1,234 steps/s" in text
    assert "label ESS 6" in text
    assert COLOUR.search(text)


def test_no_colours_where_they_are_not_wanted():
    text = on_terminal(NO_COLOR="1")
    assert "100/100" in text
    assert not COLOUR.search(text)


def test_a_dumb_terminal_gets_lines():
    text = on_terminal(TERM="dumb")
    assert "SLCP, ELBO: started" in text
    assert "\x1b[" not in text


def test_lines_in_a_log_and_nothing_if_quiet():
    def run(*options):
        command = [sys.executable, "-c", REPORTS, *options]
        return subprocess.run(
            command, env=environment(), capture_output=True, text=True, check=True
        )

    log = run()
    assert log.stderr.splitlines()[0] == "SLCP, ELBO: started"
    assert log.stderr.splitlines()[-1].startswith("SLCP, ELBO: done step 100/100")
    assert "\x1b" not in log.stdout + log.stderr
    quiet = run("--quiet")
    assert quiet.stdout == "end\n"
    assert quiet.stderr == ""


def test_ctrl_c_ends_a_real_fit_with_130_and_its_files(density, tmp_path):
    out = tmp_path / "out"
    argv = ["-m", "softcvi", "fit", f"{density}:log_prob", "--guide", "mean-field"]
    child = pexpect.spawn(
        sys.executable,
        [*argv, "--steps", "1000000000", "--out", str(out)],
        env=environment(),
        encoding="utf-8",
        dimensions=(24, 120),
        timeout=240,
        # A background job ignores Ctrl-C, and so would its child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    child.expect(r"steps/s")
    child.kill(signal.SIGINT)
    child.expect("--resume")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "Traceback" not in (child.before or "")
    assert (out / "result.json").exists()
    assert (out / "report.html").exists()
    assert (out / "checkpoint.npz").exists()


def test_a_terminal_that_knows_few_characters_shows_the_others_as_escapes(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["fit", "modäl.py"]) == 2
    stream.flush()
    assert rb"mod\xe4l.py: no such file" in stream.buffer.getvalue()
