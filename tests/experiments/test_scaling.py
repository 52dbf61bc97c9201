"""The cost model of a step: coefficients, predictions, and what it is fitted to."""

import itertools

import pytest
from softcvi_experiments.scaling import (
    Accelerator,
    Case,
    Core,
    Costs,
    Network,
    Study,
    fit_costs,
    predict,
)
from softcvi_experiments.scaling._measure import exchanges, measure
from softcvi_experiments.scaling._tables import costs_of

KNOWN = {
    "step": 4e-6,
    "entries": 6e-9,
    "parameters": 2e-9,
    "factors": 3e-10,
    "reads": 8e-9,
    "terms": 5e-9,
    "products": 1e-10,
    "groups": 4e-8,
}
COUNTS = (1, 8, 100, 1_000, 10_000)
CASE = Case("full-rank", 8, 20, rows=10**9)
DEVICES = {"core": Core(Costs(KNOWN)), "accelerator": Accelerator()}


def made_up_records(way: str = "SoftCVI") -> list[dict]:
    """Records of the study's own cases, with times of known coefficients."""
    found = []
    for task in Study(ways=[way]).tasks():
        sizes = ("guide", "particles", "dimension", "rows", "groups")
        case = Case(**{name: task[name] for name in sizes})
        if task["part"] not in ("exchange", "load", "whole"):
            found.append({**task, "seconds_per_step": Costs(KNOWN).of(case)})
    return found


def test_known_coefficients_are_recovered_from_the_cases_of_the_study():
    found = costs_of(made_up_records(), "SoftCVI")
    assert found.each == pytest.approx(KNOWN, rel=1e-4)
    assert max(map(abs, found.errors)) < 1e-6


def test_noise_of_some_per_cent_moves_predictions_by_as_much():
    records = made_up_records()
    for record, factor in zip(records, itertools.cycle((0.95, 1.0, 1.05))):
        record["seconds_per_step"] *= factor
    found = costs_of(records, "SoftCVI")
    assert all(value >= 0 for value in found.each.values())
    for case in (CASE, Case("mean-field", 8, 10**6)):
        assert found.of(case) == pytest.approx(Costs(KNOWN).of(case), rel=0.15)


def test_what_no_case_has_is_left_out():
    cases = [Case("mean-field", k, d) for k in (2, 8) for d in (10, 1_000)]
    names = ["step", "entries", "products"]
    found = fit_costs(cases, [Costs(KNOWN).of(c, names) for c in cases], names)
    assert list(found.each) == ["step", "entries"]


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
@pytest.mark.parametrize("way", ["SoftCVI", "ELBO"])
def test_more_devices_have_fewer_rows_and_longer_exchanges(device, way):
    found = [predict(device, Network(), CASE, count, way) for count in COUNTS]
    assert found[0].exchange == 0
    assert found[0].efficiency == pytest.approx(1)
    for fewer, more in itertools.pairwise(found):
        assert more.rows < fewer.rows
        assert more.bytes < fewer.bytes
        assert more.rest == fewer.rest
        assert more.efficiency < fewer.efficiency
        assert more.seconds > more.rest
        if way == "SoftCVI":
            assert more.exchange > fewer.exchange


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
def test_larger_posteriors_and_slower_networks_take_longer(device):
    def seconds(case, **network):
        return predict(device, Network(**network), case, 100).seconds

    assert seconds(Case("full-rank", 8, 20, rows=10**10)) > seconds(CASE)
    assert seconds(Case("full-rank", 8, 200, rows=10**9)) > seconds(CASE)
    assert seconds(Case("mean-field", 8, 20, rows=10**9)) < seconds(CASE)
    assert seconds(CASE, latency=1e-3) > seconds(CASE)
    assert seconds(CASE, bandwidth=1e6) > seconds(CASE)
    assert predict(device, Network(), CASE, 100, "ELBO").exchange > (
        predict(device, Network(), CASE, 100, "SoftCVI").exchange
    )


def test_collective_operations_are_counted_inside_and_outside_of_loops():
    text = """%body.1 (p: f32[8]) -> f32[8] {
  %a = f32[8,20]{1,0} all-reduce(%p), channel_id=1
}
ENTRY %main (p: f32[8]) -> f32[8] {
  %b = (f32[8]{0}, f32[8]{0}) all-reduce(%p, %p), channel_id=2
}
"""
    assert exchanges(text) == {"outside_loops": 1, "inside_loops": 1, "bytes": 704}


@pytest.mark.parametrize("way", ["SoftCVI", "ELBO", "NumPyro ELBO"])
def test_every_way_is_measured(way, monkeypatch):
    monkeypatch.setattr("softcvi_experiments.scaling._measure._ENOUGH_SECONDS", 0.001)
    record = measure("rows", way, "mean-field", 4, 3, 50, 0, 1)
    assert record["seconds_per_step"] > 0
    # Data alone: 50 rows of three covariates and an outcome.
    assert record["argument_bytes"] >= 50 * 4 * 4


def test_an_interrupted_study_says_how_much_is_missing():
    records = made_up_records()
    missing = len(Study().tasks()) - len(records)
    assert f"{missing} cases have no answer yet" in Study().page(records)
