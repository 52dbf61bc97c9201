"""The study of many modes: its cases, its measures and its table."""

import numpy as np
import pytest
from softcvi_experiments import study as driver
from softcvi_experiments.modes import CASES, get_case, study_page
from softcvi_experiments.modes._study import Study
from softcvi_experiments.modes._worker import measures


@pytest.mark.parametrize("name", CASES)
def test_locations_are_in_the_file(name):
    case = get_case(name, CASES[name][0] - 1)
    assert len(case.weights) == len(case.means) == len(case.scales)
    np.testing.assert_allclose(case.weights.sum(), 1.0)
    assert case.target.structure.size == case.means.shape[1]


def test_exact_draws_have_all_parts_and_one_part_has_one():
    rng = np.random.default_rng(0)
    case = get_case("forty-2", 0)
    draws = case.means[rng.integers(40, size=20_000)] + rng.normal(size=(20_000, 2))
    found = measures(case, draws)
    assert found["found"] == 40
    # Standard errors of shares are 0.0011.
    assert found["weight_error"] < 0.006
    assert found["entropy_share"] > 0.98
    assert measures(case, draws * 0 + case.means[3])["found"] == 1


def test_the_grid_has_one_key_and_the_others_five():
    assert len(Study(["two-normals"], ["fit"], range(5)).tasks()) == 180
    assert len(Study(["spikes"], ["fit"], range(5)).tasks()) == 25


RECORD = {
    "status": "ok", "parameters": 2, "parts": 2, "found": 1, "weight_error": 0.8,
    "entropy_share": 0.0, "ess_share": 0.9, "trusted": True, "seconds": 3.0,
}  # fmt: skip


def test_the_table_counts_what_is_trusted_and_wrong():
    record = {"case": "spikes", "entry": 0, "key": 0, "method": "fit", **RECORD}
    failed = {**record, "key": 1, "status": "error", "message": "late"}
    page = study_page([record, failed])
    assert "| spikes | 2          | fit    | 1    | 0         | 0.800" in page
    assert "- spikes 0 1 fit: error, late" in page


def test_the_command_runs_what_is_asked_for_and_keeps_what_failed(
    tmp_path, monkeypatch, capsys
):
    def answers(module, groups, *, jobs, timeout, **_):
        assert (jobs, timeout) == (3, 9.0)
        for task in (task for group in groups for task in group):
            if task["key"] == 1:
                yield task, driver.ChildError("no luck")
            else:
                yield task, {**task, **RECORD}

    monkeypatch.setattr(driver, "run_tasks", answers)
    words = "--cases spikes --methods fit --keys 0-1 --jobs 3 --timeout 9 --out"
    for printed in ("[10/10]", "[5/5]"):  # what failed is run again
        driver.command(Study, None, [*words.split(), str(tmp_path)])
        assert printed in capsys.readouterr().out
    page = (tmp_path / "modes.md").read_text()
    assert "| spikes | 2          | fit    | 5    | 0         | 0.800" in page
    assert "- spikes 4 1 fit: error, no luck" in page
