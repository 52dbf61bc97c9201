"""``softcvi sweep``: one record per combination, and messages that name the remedy."""

import json

import pytest

from softcvi.cli import main
from softcvi.cli._folder import hold_folder

MODEL = """
import jax.numpy as jnp

like = {"x": jnp.zeros(2)}


def log_prob(theta, data):
    return -0.5 * jnp.sum((theta["x"] - data["centre"]) ** 2)
"""


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "data.json").write_text('{"centre": [1.0, 2.0]}')
    path = tmp_path / "grid.yaml"
    path.write_text(
        "models: [model.py:log_prob]\ndata: [data.json]\nguides: [mean-field]\n"
        "objectives: [softcvi, elbo]\nseeds: 2\nsteps: 30\n"
    )
    return path


@pytest.mark.slow
def test_a_sweep_writes_one_record_per_combination_and_runs_none_twice(grid, capsys):
    assert main(["sweep", str(grid), "--out", "out", "--no-cache"]) == 0
    printed = capsys.readouterr().out
    assert "| model.py:log_prob | data.json | mean-field | elbo |" in printed
    path = grid.parent / "out" / "records.jsonl"
    assert (grid.parent / "out" / "sweep.png").read_bytes()[1:4] == b"PNG"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == 4
    assert len({record["id"] for record in records}) == 4
    before = path.read_bytes()
    assert main(["sweep", str(grid), "--out", "out", "--no-cache", "--quiet"]) == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "tcp://a:1"], "--scheduler: is of use only with"),
        (["--workers", "2"], "--workers: a serial sweep has one"),
    ],
)
def test_options_that_do_not_apply_are_refused(words, message, grid, capsys):
    assert main(["sweep", str(grid), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_grid_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["sweep", str(tmp_path / "no.yaml")]) == 2
    assert "no.yaml: no such grid file" in capsys.readouterr().err


def test_two_sweeps_on_one_folder_are_refused_and_the_records_stay(grid, capsys):
    out = grid.parent / "out"
    with hold_folder(out):
        (out / "records.jsonl").write_text("")
        assert main(["sweep", str(grid), "--out", str(out)]) != 0
        assert (out / "records.jsonl").read_text() == ""
    assert "is in use by" in capsys.readouterr().err
