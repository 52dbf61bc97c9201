"""Code of the documentation runs as printed, or at least calls what exists.

Running every tutorial takes minutes, which is what `make docs` does.
"""

import ast
import importlib
import inspect
import io
import re
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import softcvi

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r'^```python exec="on"([^\n]*)\n(.*?)^```', re.S | re.M)


def _blocks(page: str) -> list[tuple[str, str, int]]:
    text = (DOCS / page).read_text()
    found = []
    for match in BLOCK.finditer(text):
        session = re.search(r'session="(\w+)"', match[1])
        line = text[: match.start()].count("\n") + 1
        found.append((session[1] if session else str(line), match[2], line))
    return found


def _run(page: str, *, only_shown: bool = False) -> str:
    sessions: dict[str, dict] = {}
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages' warnings, as in the build
        for session, code, line in _blocks(page):
            if only_shown and "from pictures import" in code:
                continue
            scope = sessions.setdefault(session, {"__name__": "__main__"})
            # Blank lines in front make a traceback name the line of the page.
            exec(compile("\n" * line + code, f"docs/{page}", "exec"), scope)
    return printed.getvalue()


@pytest.fixture
def no_steps(monkeypatch):
    """Hand back guides as they are: the build of the site runs the fits in full."""
    signature = inspect.signature(softcvi.fit)

    def unfitted(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        target, guide = given["target"], given.get("guide")
        if guide is None:
            discrete = target.structure.discrete_names
            make = softcvi.guides.mixed if discrete else softcvi.guides.mean_field
            guide = make(target)
        return softcvi.FitResult(
            posterior=softcvi.Posterior(guide, target),
            status="finished",
            message="nothing was done",
            history=softcvi.fitting.History(*np.ones((4, 16))),
            steps=0,
            num_particles=8,
            num_bad_densities=0,
            num_skipped_steps=0,
            seconds_start=0.0,
            seconds_compile=0.0,
            seconds_run=0.0,
            choices={"guide": "as given"},
        )

    monkeypatch.setattr(softcvi, "fit", unfitted)


@pytest.fixture(autouse=True)
def as_in_the_build(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS / "build_support"), *sys.path])
    with mpl.rc_context({"backend": "svg"}):
        yield


@pytest.mark.slow
def test_skeletons_run_as_printed():
    printed = _run("extending.md")
    assert "is below the limit" in printed


@pytest.mark.slow
def test_first_example_runs_as_printed():
    assert "trusted" in _run("index.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["black-box.md", "model-parameters.md"])
@pytest.mark.usefixtures("no_steps")
def test_quick_tutorials_run(page):
    _run(f"tutorials/{page}", only_shown=True)


class _Calls(ast.NodeVisitor):
    """Follow names into softcvi, and hold calls against signatures."""

    def __init__(self):
        self.known: dict[str, object] = {}
        self.checked = 0

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name == "softcvi":
                self.known["softcvi"] = softcvi

    def visit_ImportFrom(self, node):
        if (node.module or "").split(".")[0] == "softcvi":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
                self.known[alias.asname or alias.name] = getattr(module, alias.name)

    def resolve(self, node):
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            parent = self.resolve(node.value)
            return None if parent is None else getattr(parent, node.attr)
        return None

    def visit_Attribute(self, node):
        self.resolve(node)
        self.generic_visit(node)

    def visit_Call(self, node):
        called = self.resolve(node.func)
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        if called is not None and not starred and all(k.arg for k in node.keywords):
            names = {keyword.arg: None for keyword in node.keywords}
            inspect.signature(called).bind(*node.args, **names)
            self.checked += 1
        self.generic_visit(node)


def test_every_block_calls_what_exists():
    checked = 0
    for path in DOCS.rglob("*.md"):
        sessions: dict[str, _Calls] = {}
        for session, code, line in _blocks(str(path.relative_to(DOCS))):
            calls = sessions.setdefault(session, _Calls())
            calls.visit(ast.parse("\n" * line + code, str(path)))
        checked += sum(calls.checked for calls in sessions.values())
    assert checked > 80
