"""The README does what it says."""

import importlib.util
import re
from pathlib import Path

import pytest

from softcvi.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_printed_and_is_short(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert "verdict" in capsys.readouterr().out
    assert names["draws"]["beta"].shape == (4000, 3)


def test_files_that_it_names_exist():
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert linked
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_tables_are_those_of_the_records():
    path = ROOT / "benchmarks" / "speed_tables.py"
    spec = importlib.util.spec_from_file_location("speed_tables", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, of_page in script.PAGES.items():
        page = (ROOT / name).read_text(encoding="utf-8")
        assert script.with_tables(page, of_page) == page, name


FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
BLOCKS = "".join(text for language, text in FENCES if not language)
COMMANDS = sorted(set(re.findall(r"^softcvi (\w+)", BLOCKS, re.MULTILINE)))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_it_names_exist(command):
    assert main([command, "--help"]) == 0
