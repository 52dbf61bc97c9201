"""Benchmarks: the same model for all, honest rows, and results that can be redrawn."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from softcvi_experiments import bench
from softcvi_experiments.bench._child import run_child
from softcvi_experiments.bench._contender import Contender, time_contender
from softcvi_experiments.bench._growth import slope
from softcvi_experiments.bench._loops_peers import peer_contenders
from softcvi_experiments.bench._problems import get_problem
from softcvi_experiments.bench._store import Result
from softcvi_experiments.children import ChildError
from softcvi_experiments.tasks import (
    PAPER_TASKS,
    linear_regression_log_prob,
    slcp_log_prob,
)

from softcvi.cli import main

pytestmark = pytest.mark.slow


def silent(folder, **settings):
    return bench.Options(folder, quick=True, say=lambda line: None, **settings)


def test_the_models_given_to_all_libraries_are_the_tasks():
    problem = get_problem("linear_regression")
    x = {"beta": jnp.linspace(-1, 1, 50), "mu": jnp.array(0.3)}
    theirs = log_density(problem.model, problem.args, {}, x)[0]
    ours = linear_regression_log_prob(x, dict(zip("xy", problem.args, strict=True)))
    np.testing.assert_allclose(theirs, ours, rtol=1e-5)

    problem = get_problem("slcp")
    x = {"theta": jnp.array([0.5, -0.2, 1.1, -0.8, 0.4])}
    theirs = log_density(problem.model, problem.args, {}, x)[0]
    np.testing.assert_allclose(
        theirs, slcp_log_prob(x, {"x": problem.args[0]}), rtol=1e-5
    )


@pytest.mark.parametrize("name", PAPER_TASKS)
def test_every_problem_has_peers(name):
    peers = peer_contenders(get_problem(name), 8)
    labels = [peer.label for peer in peers]
    assert len(set(labels)) == len(labels)
    assert {"numpyro", "flowjax"} <= {peer.package for peer in peers}
    assert sum("with bar" in label for label in labels) >= 3


def test_a_library_that_is_absent_is_a_row_and_not_an_error():
    def make():
        raise ModuleNotFoundError("no module", name="pymc")

    row = time_contender(Contender("PyMC ADVI", "pymc", make), 10, 1)
    assert row["status"] == "not installed: pymc"


def test_a_child_that_fails_says_why():
    with pytest.raises(ChildError, match="KeyError"):
        run_child("something else")


def test_slopes_are_those_of_the_larger_half():
    sizes = np.array([1, 10, 100, 1000, 10000])
    assert slope(sizes, 5.0 + sizes.astype(float) ** 2) == pytest.approx(2, abs=0.01)


@pytest.fixture
def stored(tmp_path):
    """A small made-up result of each suite."""
    timed = {"status": "ok", "us_a_step": 30.0, "seconds_first_call": 1.5, "ratio": 1.0}
    problem = {"task": "slcp", "title": "SLCP, flow", "steps": 9, "num_particles": 8}
    absent = {"label": "PyMC ADVI", "status": "not installed: pymc"}
    ways = {"bare": 20.0, "silent": 20.2, "full": 20.5}
    bare = {"task": "slcp", "ratio": 1.03, "ratio_host": 1.01, "limit": 1.05}
    curve = {"label": "flow", "sizes": [2, 4], "us_a_step": [1.0, 2.0], "slope": 1.0}
    first = {"seconds_compile": 3.0, "seconds_to_first_step": 4.0}
    fits = {"task": "slcp", "method": "elbo", "fits": 50, "us_a_step": 900.0}
    memory = {"what": "history", "large": 100, "growth_mib": 1.0, "bound_mib": 32.0}
    parts = {
        "peers": {
            "steps": [{**problem, "rows": [{"label": "softcvi fit", **timed}, absent]}],
            "overhead": [{**bare, "us_a_step": ways}],
        },
        "growth": {"depth": [curve], "memory": [{**memory, "returned_mib": 0.1}]},
        "compile": {
            "imports": {"reference": 1.0, "softcvi": 1.2, "ratio": 1.2},
            "tasks": [{"task": "slcp", "cold": first, "warm": first}],
        },
        "figure": {
            "one": [{"task": "slcp", "us_a_step": 400.0}],
            "many": {
                "rows": [fits], "seconds_figure": 240.0, "measured": True,
                "figure_steps": 50_000,
            },
        },
    }  # fmt: skip
    paths = {}
    for suite, values in parts.items():
        result = Result(suite, silent(tmp_path))
        for part, value in values.items():
            result.add(part, value)
        paths[suite] = result.path
    return paths


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("peers", ["1.00x", "not installed: pymc", "1.03"]),
        ("growth", ["flow layers", "1.00", "history of 100 steps", "32.0"]),
        ("compile", ["1.20", "SLCP", "3.00"]),
        ("figure", ["400", "50 fits, elbo", "900", "240 s"]),
    ],
)
def test_stored_results_become_tables_and_plots(stored, suite, words, capsys):
    assert main(["bench", "--redraw", str(stored[suite])]) == 0
    table = capsys.readouterr().out
    for word in [*words, f"softcvi bench --suite {suite}", "jax "]:
        assert word in table
    assert stored[suite].with_suffix(".md").read_text() == table
    assert stored[suite].with_suffix(".png").stat().st_size > 5_000


def test_a_part_measured_again_joins_the_others(stored):
    options = silent(stored["peers"].parent, parts=("overhead",))
    Result("peers", options).add("overhead", [])
    parts = json.loads(stored["peers"].read_text())["parts"]
    assert parts["overhead"] == []
    assert parts["steps"]


def test_the_command_line_refuses_what_it_cannot_measure(tmp_path, capsys):
    assert main(["bench", "--out", str(tmp_path)]) == 2
    assert "--suite" in capsys.readouterr().err
    unknown = ["bench", "--suite", "growth", "--parts", "speed", "--out", str(tmp_path)]
    assert main(unknown) == 2
    assert "memory" in capsys.readouterr().err


def test_the_figure_suite_runs_in_its_quick_form(tmp_path):
    files = bench.bench_figure(silent(tmp_path))
    assert [path.name for path in files] == ["figure.json", "figure.md", "figure.png"]
    result = json.loads(files[0].read_text())
    assert result["parts"]["one"][0]["us_a_step"] > 0
    assert result["parts"]["many"]["rows"][0]["fits"] == 2
    assert result["machine"]["versions"]["jax"] == jax.__version__


def test_parts_keep_the_date_of_their_measurement(tmp_path):
    options = bench.Options(tmp_path, say=lambda line: None)
    first = Result("compile", options)
    imports = {"reference": 2.0, "softcvi": 2.5, "ratio": 1.25}
    first.add("imports", imports)
    stored = json.loads(first.path.read_text())
    stored["machine"]["date"] = stored["made"]["imports"]["date"] = "2020-01-01"
    first.path.write_text(json.dumps(stored))
    again = Result("compile", bench.Options(tmp_path, parts=("tasks",), say=print))
    again.add("tasks", [])
    made = json.loads(again.path.read_text())["made"]
    assert made["imports"]["date"] == "2020-01-01"
    assert made["tasks"]["date"] > "2020-01-01"
