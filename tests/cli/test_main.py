"""The frame: help, exit codes, errors in a line, completion."""

import logging
import subprocess
import warnings

import pytest

from softcvi.cli import main
from softcvi.cli._errors import CommandError, explain
from softcvi.cli._terminal import clear_warnings

COMMANDS = (
    "demo",
    "fit",
    "report",
    "reproduce",
    "references",
    "bench",
    "completion",
)


def test_help_lists_every_command_and_the_exit_codes(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)
    assert "130 interrupted" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(command, capsys):
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert "--traceback" in text


def test_version(capsys):
    import softcvi

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"softcvi {softcvi.__version__}"


@pytest.mark.parametrize(
    ("argv", "message", "command"),
    [
        ([], "required: COMMAND", "softcvi"),
        (["fti"], "'fti'; did you mean fit?", "softcvi"),
        (["fit"], "required: FILE.py:NAME", "softcvi fit"),
        (["fit", "m.py", "--guide", "flwo"], "did you mean flow?", "softcvi fit"),
        (["fit", "m.py", "--steps", "many"], "--steps: invalid int", "softcvi fit"),
        (
            ["fit", "m.py", "--dta", "a.csv"],
            "--dta; did you mean --data?",
            "softcvi fit",
        ),
        (["report", "a", "--zzz=1"], "unknown option --zzz\n", "softcvi report"),
        (["fit", "m.py", "--bogus"], "unknown option --bogus\n", "softcvi fit"),
        (["completion", "zsh", "fish"], "unknown word fish", "softcvi completion"),
        (["bench", "--suite", "none"], "no such choice 'none'", "softcvi bench"),
    ],
)
def test_bad_usage_is_two_lines_and_two(argv, message, command, capsys):
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith(f"{command}: ")
    assert error.endswith(f"\nsee {command} --help\n")
    assert len(error.splitlines()) == 2


def test_help_is_consistent(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "--out fits/flow" in text
    assert "softcvi report fits/*" in text
    assert main(["fit", "--help"]) == 0
    text = capsys.readouterr().out
    assert "0 also for an answer that is not trusted" in text
    assert ":model if NAME is left" in text


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (CommandError("data.json: no such file."), "data.json: no such file.", 2),
        (ValueError("steps: must be at least 1."), "--steps: must be at least 1.", 2),
        (ValueError("num_particles: expected 1."), "--particles: expected 1.", 2),
        (ValueError("khat: got 3.0."), "--until-khat: got 3.0.", 2),
        (
            ValueError("objective: Use softcvi.SoftCVI()."),
            "--objective: Use --objective softcvi.",
            2,
        ),
        (ValueError("elsewhere: steps"), "elsewhere: steps", 2),
        (FileNotFoundError(2, "No such file", "a.npz"), "a.npz: no such file", 2),
        (RuntimeError("boom"), "RuntimeError: boom", 1),
        (
            ModuleNotFoundError("No module named 'pymc'", name="pymc"),
            "No module named 'pymc'. Install it, for example with: "
            "pip install 'softcvi[pymc]'",
            1,
        ),
    ],
)
def test_errors_are_a_line_with_a_code(error, text, code):
    assert explain(error) == (text, code)


def test_a_traceback_is_shown_only_if_asked_for(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    short = capsys.readouterr().err
    assert "result.json" in short
    assert "Traceback" not in short
    assert main(["report", str(tmp_path), "--traceback"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
    assert "until-khat" in script
    assert "snis-fkl" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_bash_completes_choices(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    words = "COMP_WORDS=(softcvi fit m.py --guide f); COMP_CWORD=4; _softcvi"
    run = subprocess.run(
        ["bash", "-c", f'{script}\n{words}; echo "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["full-rank", "flow"]


def test_other_libraries_stay_quiet_and_are_put_back(caplog):
    with clear_warnings():
        warnings.warn("an old function", DeprecationWarning, stacklevel=1)
        logging.getLogger("pytensor").warning("no BLAS")
    assert not caplog.records
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard again", UserWarning, stacklevel=1)
    logging.getLogger("pytensor").warning("heard")
    assert len(caplog.records) == 1


def test_a_suite_that_is_not_there_says_so(capsys, monkeypatch):
    import softcvi_experiments

    monkeypatch.setitem(__import__("sys").modules, "softcvi_experiments.bench", None)
    monkeypatch.delattr(softcvi_experiments, "bench", raising=False)
    assert main(["bench", "--suite", "growth"]) == 1
    assert "--suite growth" in capsys.readouterr().err
