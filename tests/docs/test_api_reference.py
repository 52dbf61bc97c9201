"""Every public name is in the API reference, and shows how it is used."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import softcvi

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MODULES = (
    "targets",
    "guides",
    "objectives",
    "posterior",
    "diagnostics",
    "starts",
    "fitting",
    "ladder",
    "sweeps",
    "adapters",
    "report",
    "demo",
)


def _public(short: str) -> list[str]:
    module = importlib.import_module(f"softcvi.{short}")
    return [n for n in module.__all__ if not inspect.ismodule(getattr(module, n))]


def _documented(short: str) -> list[str]:
    page = (DOCS / "api" / f"{short}.md").read_text()
    return re.findall(rf"^::: softcvi\.{short}\.(\w+)$", page, re.M)


@pytest.mark.parametrize("short", MODULES)
def test_every_public_name_is_on_its_page_once(short):
    documented = _documented(short)
    missing = sorted(set(_public(short)) - set(documented))
    gone = sorted(set(documented) - set(_public(short)))
    assert not missing, f"add '::: softcvi.{short}.NAME' to docs/api/{short}.md"
    assert not gone, f"docs/api/{short}.md names what softcvi.{short} lacks"
    assert len(documented) == len(set(documented))


def test_every_short_name_leads_to_a_page():
    names = {
        name for name in softcvi.__all__ if not inspect.ismodule(getattr(softcvi, name))
    }
    covered = set().union(*(_documented(short) for short in MODULES))
    assert not names - covered


@pytest.mark.parametrize("short", MODULES)
def test_every_public_name_has_an_example(short):
    module = importlib.import_module(f"softcvi.{short}")
    lacking = []
    for name in _public(short):
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue  # constants are shown with their value
        text = inspect.getdoc(thing) or ""
        own = not inspect.isclass(thing) or "__doc__" in vars(thing)
        example = text.partition("Example:")[2]
        if not own or ">>>" not in example:
            lacking.append(name)
    assert not lacking, f"softcvi.{short}: docstrings without 'Example:' and '>>>'"


def test_map_of_the_paper_names_files_that_exist():
    page = (DOCS / "paper-map.md").read_text()
    paths = re.findall(r"`((?:softcvi|tests)/[\w/]+\.py)`", page)
    assert len(paths) > 10
    assert not [path for path in paths if not (ROOT / path).exists()]
    functions = re.findall(r"`(\w+)` in `(softcvi/[\w/]+\.py)`", page)
    assert functions
    for function, path in functions:
        assert f"def {function}(" in (ROOT / path).read_text(), (function, path)


def test_map_of_the_paper_names_commands_that_parse():
    from softcvi.cli import make_app

    page = (DOCS / "paper-map.md").read_text()
    commands = re.findall(r"`softcvi (reproduce [^`]+)`", page)
    assert len(commands) > 8
    for command in commands:
        words = command.split()
        make_app().parse_args(words, exit_on_error=False, print_error=False)
