"""The study of many rows, in small."""

import json

import pytest
from softcvi_experiments import rows, throughput
from softcvi_experiments.study import command


@pytest.mark.slow
def test_a_fit_is_right_and_its_record_makes_a_table():
    record = rows.measure("linear", 2_000, 200)
    # Monte Carlo errors of 4,000 draws: a mean 0.016 sd, an sd 1.1 %; 20 parameters.
    assert record["mean_error"] < 0.08
    assert 0.94 < record["sd_ratios"][0] < record["sd_ratios"][1] < 1.06
    assert record["trusted"]
    assert "linear" in rows.table([record])


@pytest.mark.slow
def test_the_command_keeps_a_record(tmp_path):
    words = ["--rows", "500", "--steps", "50", "--out", str(tmp_path)]
    command(rows.Study, rows.__doc__, words)
    [line] = (tmp_path / "records.jsonl").read_text().splitlines()
    assert json.loads(line)["rows"] == 500
    assert (tmp_path / "rows.md").is_file()


def test_processes_compute_on_the_backend_that_was_asked_for(tmp_path):
    for study in (rows.Study(backend="gpu"), throughput.Study(backend="gpu")):
        assert study.environment(tmp_path)["JAX_PLATFORMS"] == "cuda"
