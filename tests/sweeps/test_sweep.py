"""A sweep ends with exactly one record per configuration, whatever happens."""

import dataclasses
import json

import pytest

from softcvi.fitting import fit_many
from softcvi.sweeps import (
    DaskExecutor,
    Grid,
    ProcessExecutor,
    RecordStore,
    SerialExecutor,
    SweepResult,
    _sweep,
    sweep,
)


def small(models=("1.0",), **settings):
    settings = {"guides": ("mean-field",), "seeds": (0, 1), "steps": 20} | settings
    return Grid(models, **settings)


def test_every_configuration_gets_one_record_and_finished_ones_never_run_again(
    load, tmp_path
):
    first = sweep(small(), load, tmp_path, progress=False)
    assert [r["status"] for r in first.records] == ["finished"] * 2
    calls = []

    def counting(model, data):
        calls.append(model)
        return load(model, data)

    grid = small(seeds=(0, 1, 2))
    second = sweep(grid, counting, tmp_path, progress=False)
    assert len(calls) == 1
    assert second.records[:2] == first.records
    assert len(RecordStore(tmp_path).all()) == 3


def test_a_record_says_where_it_comes_from(load, tmp_path):
    record = sweep(small(seeds=(0,)), load, tmp_path, progress=False).records[0]
    assert record["made"]["softcvi"]
    assert record["made"]["jax"]
    assert record["made"]["command"]
    assert abs(record["estimates"][0]["mean"] - 1.0) < 1.5


def test_what_ctrl_c_has_ended_has_no_record_and_runs_again(
    load, tmp_path, monkeypatch
):
    def pressed(*args, **settings):
        results = fit_many(*args, **settings)
        return [dataclasses.replace(r, status="interrupted") for r in results]

    with monkeypatch.context() as patched:
        patched.setattr(_sweep, "fit_many", pressed)
        with pytest.raises(KeyboardInterrupt):
            sweep(small(), load, tmp_path, progress=False)
    assert RecordStore(tmp_path).all() == []
    again = sweep(small(), load, tmp_path, progress=False)
    assert [r["status"] for r in again.records] == ["finished"] * 2


def test_a_model_that_fails_has_a_record_that_says_why(load, tmp_path):
    grid = small(("1.0", "broken"), seeds=(0,))
    result = sweep(grid, load, tmp_path, progress=False)
    assert result.num_failed == 1
    assert "this model cannot be made" in result.records[1]["message"]


def test_a_model_that_exits_does_not_end_the_sweep(load, tmp_path):
    grid = small(("exits", "1.0"), seeds=(0,))
    result = sweep(grid, load, tmp_path, progress=False)
    assert [r["status"] for r in result.records] == ["failed", "finished"]
    assert "the model ended the program (SystemExit(0))" in result.records[0]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor",
    [ProcessExecutor(workers=2), DaskExecutor(workers=2)],
    ids=["processes", "dask"],
)
def test_a_worker_that_is_killed_loses_nothing(executor, load, tmp_path):
    deadly = f"deadly:{tmp_path / 'died'}"
    grid = small(("0.5", deadly, "2.0"), seeds=(0,))
    result = sweep(grid, load, tmp_path / "out", executor=executor, progress=False)
    assert (tmp_path / "died").exists()
    assert [r["status"] for r in result.records] == ["finished"] * 3
    stored = [r["id"] for r in RecordStore(tmp_path / "out").all()]
    assert sorted(stored) == sorted(c.identifier for c in grid.configurations())


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor",
    [ProcessExecutor(workers=2), DaskExecutor(workers=2)],
    ids=["processes", "dask"],
)
def test_a_batch_that_always_kills_its_worker_is_given_up(executor, load, tmp_path):
    grid = small(("0.5", "fatal"), seeds=(0,))
    result = sweep(grid, load, tmp_path / "out", executor=executor, progress=False)
    assert [r["status"] for r in result.records] == ["finished", "failed"]
    assert "killed or out of memory): give workers" in result.records[1]["message"]


def test_settings_are_named_by_what_differs():
    grid = small(("0.5", "2.0"), seeds=(0, 1))
    settings = [dataclasses.asdict(c) for c in grid.configurations()]
    result = SweepResult([{"configuration": s, "status": "failed"} for s in settings])
    found = [(name, len(records)) for name, records in result.labelled_groups()]
    assert found == [("0.5", 2), ("2.0", 2)]


@pytest.mark.slow
def test_executors_agree(load, tmp_path):
    grid = small(seeds=(3,))
    one, other = (
        sweep(grid, load, tmp_path / name, executor=executor, progress=False)
        for name, executor in (("s", SerialExecutor()), ("p", ProcessExecutor(1)))
    )
    mine, theirs = (r.records[0]["estimates"][0]["mean"] for r in (one, other))
    # The same program with another number of threads: rounding only.
    assert mine == pytest.approx(theirs, abs=1e-4)


def test_a_scheduler_that_cannot_be_reached_is_named(load, tmp_path, monkeypatch):
    monkeypatch.setattr("softcvi.sweeps._dask._CONNECT_SECONDS", 1)
    executor = DaskExecutor("tcp://127.0.0.1:9")
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9 cannot be reached"):
        sweep(small(), load, tmp_path, executor=executor, progress=False)


def test_a_record_cut_off_by_a_crash_is_dropped_and_the_others_stay(tmp_path):
    store = RecordStore(tmp_path)
    store.add([{"id": "a"}, {"id": "b"}])
    with store.path.open("ab") as handle:
        handle.write(b'{"id": "c", "khat": 0.')
    assert store.identifiers() == {"a", "b"}
    store.add([{"id": "c"}, {"id": "a"}])
    assert [json.loads(x)["id"] for x in store.path.read_text().splitlines()] == [
        "a",
        "b",
        "c",
    ]


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    store = RecordStore(tmp_path)
    store.add([{"id": "a"}])
    store.path.write_text("not json\n" + store.path.read_text())
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        store.all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [a]\nguides: [mean-feild]", "Did you mean 'mean-field'"),
        ("models: [a]\nsteeps: 3", "Did you mean 'steps'"),
        ("models: [a]\nseeds: []", "no combinations"),
        ("seeds: 3", "names no models"),
        ("models: [a", "is not YAML"),
        # A reader that went on to the end would take minutes.
        ("models: " + "[" * 100_000, "nested too deeply"),
        ("- a", "expected keys"),
    ],
)
def test_a_bad_grid_is_refused_with_the_remedy(text, message, tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Grid.read(path)


def test_a_grid_file_has_every_combination_once(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(
        "models: [a, b]\nobjectives: [softcvi, elbo]\nalphas: [0.5, 1.0]\nseeds: 3\n"
    )
    # Three seeds of two models: alpha 0.5 and 1, and the ELBO, which has no alpha.
    assert len(Grid.read(path).configurations()) == 18
