"""Workflows, hooks and templates refer to things that exist."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_of_the_makefile(path):
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    jobs = yaml.safe_load(path.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    called = {
        name for step in steps for name in re.findall(r"make ([a-z-]+)", str(step))
    }
    assert called <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_code_of_others_never_runs_with_a_right_to_write(path):
    """What is installed or built could use the rights of its job."""
    for name, job in yaml.safe_load(path.read_text())["jobs"].items():
        steps = job["steps"]
        runs = " ".join(step.get("run", "") for step in steps)
        may_write = "write" in job.get("permissions", {}).values()
        assert not (may_write and re.search(r"\b(make|pip|python)\b", runs)), name
        for step in steps:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name


def test_supported_versions_of_python_are_tested():
    text = (ROOT / "pyproject.toml").read_text()
    supported = set(re.findall(r"Python :: (3\.\d+)", text))
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    tested = workflow["jobs"]["fast"]["strategy"]["matrix"]["python"]
    assert set(tested) == supported


def test_hooks_use_the_pinned_ruff():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [rev] = [r["rev"] for r in hooks["repos"] if "ruff" in r["repo"]]
    assert f"ruff=={rev.removeprefix('v')}" in (ROOT / "constraints.txt").read_text()


def test_hooks_use_the_pinned_zizmor():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [rev] = [r["rev"] for r in hooks["repos"] if "zizmor" in r["repo"]]
    tools = (ROOT / ".github/checksums/tools.txt").read_text()
    assert f"zizmor=={rev.removeprefix('v')} " in tools


def test_oldest_versions_are_the_lower_bounds():
    pins = dict(
        re.findall(
            r"^([a-z0-9-]+)==([\d.]+)$",
            (ROOT / "constraints-oldest.txt").read_text(),
            re.M,
        )
    )
    text = (ROOT / "pyproject.toml").read_text()
    for name in ("jax", "equinox", "flowjax", "optax", "numpy", "numpyro"):
        [bound] = set(re.findall(rf'"{name}>=([\d.]+)', text))
        assert pins[name].split(".")[: bound.count(".") + 1] == bound.split(".")


def test_issue_templates_are_forms():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert "blank_issues_enabled" in form or {"name", "body"} <= set(form)
