"""Cold runs beside NUTS: what is run, resumed, timed and shown."""

import time

import pytest
from softcvi_experiments.children import ChildError
from softcvi_experiments.cold import METHODS, Race, _race, run_race
from softcvi_experiments.cold._watch import _covered

from softcvi.cli import main

REPORT = {
    "phases": {"import": 2.0, "trace": 0.5, "lower": 0.25, "compile": 1.0},
    "jax": 1.75,
    "programs": 20,
    "cpu": 6.0,
    "seconds_wall": 5.0,
    "trusted": True,
    "verdict": "trusted",
}


@pytest.fixture
def children(monkeypatch):
    """Children that answer at once; those asked for are listed."""
    asked = []

    def run_child(script, method, model, run, quick, env=None, timeout=0.0):
        asked.append((method, model, run))
        if method == "nuts_vectorized":
            raise ChildError("out of memory")
        if method == "fit_second":
            return {**REPORT, "seconds_second": 0.9, "parts": {"seconds_run": 0.7}}
        return {**REPORT, "trusted": method != "nuts_parallel"}

    monkeypatch.setattr(_race, "run_child", run_child)
    return asked


def silent(line):
    pass


def test_methods_take_turns_and_are_not_run_again(children, tmp_path):
    race = Race(("slcp",), ("fit", "floor"), repeats=2)
    records = run_race(race, tmp_path, report=silent)
    assert [method for method, *_ in children] == ["fit", "floor", "floor", "fit"]
    assert {record["status"] for record in records} == {"ok"}
    children.clear()
    run_race(race, tmp_path, report=silent)
    assert children == []
    run_race(Race(("slcp",), ("fit",), repeats=3), tmp_path, report=silent)
    assert children == [("fit", "slcp", 2)]


def test_other_commits_are_measured_anew(children, tmp_path, monkeypatch):
    race = Race(("slcp",), ("fit",), repeats=1)
    run_race(race, tmp_path, report=silent)
    monkeypatch.setattr(_race, "provenance", lambda: {"commit": "another"})
    run_race(race, tmp_path, report=silent)
    assert len(children) == 2


@pytest.mark.parametrize("method", ["fit_warm", "floor_warm"])
def test_a_warm_cache_is_filled_once_before_it_counts(method, children, tmp_path):
    run_race(Race(("slcp",), (method,), repeats=2), tmp_path, report=silent)
    assert [run for *_, run in children] == [0, 0, 1]


def test_the_page_shows_medians_trust_phases_and_failures(children, tmp_path):
    run_race(Race(("slcp",), METHODS, repeats=2), tmp_path, report=silent)
    page = (tmp_path / "cold.md").read_text()
    for words in (
        "5.0 (5.0 to 5.0), 0 of 2 trusted",
        "0.2 (0.2 to 0.2)",
        "slcp nuts_vectorized run 1: ERROR out of memory",
        "Medians of up to 2 runs",
    ):
        assert words in page
    rows = [line for line in page.splitlines() if line.startswith("| SLCP")]
    [phases] = [row for row in rows if "NUTS, parallel" in row]
    numbers = [cell.strip() for cell in phases.split("|")[3:10]]
    assert numbers == ["20", "2.0", "0.5", "0.2", "1.0", "1.2", "6.0"]


def test_a_race_ends_in_time_with_what_it_has(children, tmp_path, monkeypatch):
    answer = _race.run_child

    def slow(*args, **options):
        time.sleep(0.4)
        return answer(*args, **options)

    monkeypatch.setattr(_race, "run_child", slow)
    race = Race(("slcp",), ("fit",), repeats=20)
    records = run_race(race, tmp_path, minutes=1 / 60, report=silent)
    assert 1 <= len(records) < 20
    assert (tmp_path / "cold.md").is_file()


def test_nested_traces_count_once():
    assert _covered([(2.0, 3.0), (0.0, 2.5), (1.0, 2.0), (5.0, 6.0)]) == 4.0


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="models: no 'nothing'"):
        Race(("nothing",))
    with pytest.raises(ValueError, match="methods: no 'nuts'"):
        Race(methods=("nuts",))


@pytest.mark.slow
def test_the_small_form_of_all_methods_runs(tmp_path):
    words = [
        "--suite",
        "cold",
        "--quick",
        "--repeats",
        "1",
        "--models",
        "eight_schools",
    ]
    assert main(["bench", *words, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "cold.md").read_text()
    assert "Quick form" in page
    assert "ERROR" not in page
