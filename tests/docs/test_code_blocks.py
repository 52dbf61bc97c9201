"""Code of the documentation runs: skeletons as printed, tutorials without the fits."""

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


def test_skeletons_run_as_printed():
    printed = _run("extending.md")
    assert "stopped - excess" in printed


def test_first_example_runs_as_printed():
    assert "trusted" in _run("index.md")


@pytest.mark.parametrize(
    "page", sorted(p.name for p in (DOCS / "tutorials").glob("*.md"))
)
@pytest.mark.usefixtures("no_steps")
def test_tutorials_run(page):
    _run(f"tutorials/{page}", only_shown=True)


def test_every_block_compiles():
    for path in DOCS.rglob("*.md"):
        for _, code, line in _blocks(str(path.relative_to(DOCS))):
            compile("\n" * line + code, str(path), "exec")
