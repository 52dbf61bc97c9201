"""What the page is made from: views, files, charts and words."""

import dataclasses
import json
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.diagnostics import summarise
from softcvi.report import FitView, read_fit, save_fit, write_report
from softcvi.report._columns import as_columns, density, is_discrete
from softcvi.report._curves import training_charts
from softcvi.report._draw_charts import marginal_charts, pairs_chart
from softcvi.report._table import advice


@pytest.fixture(scope="module")
def result():
    def log_prob(theta):
        return -0.5 * jnp.sum(theta["x"] ** 2)

    target = softcvi.DensityTarget(log_prob, {"x": jnp.zeros(2)})
    guide = softcvi.guides.mean_field(target)
    return softcvi.fit(jax.random.key(0), target, guide, steps=50, progress=False)


def test_a_long_history_is_drawn_in_little_memory():
    """A small file: a number takes two letters in it."""
    example, steps = FitView.example(), np.arange(200_000.0)
    history = {**dict.fromkeys(example.history, np.ones(200_000)), "step": steps}
    view = dataclasses.replace(example, history=history)
    tracemalloc.start()
    charts = training_charts([view])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 2**20
    assert sum(len(chart.drawing) for chart in charts) < 2**20


def test_a_parameter_called_as_a_scalar_of_another_loses_neither():
    draws = {"x": np.array([[1.0, 2.0]]), "x[1]": np.array([3.0])}
    expected = {"x[0]": 1.0, "x[1] of x": 2.0, "x[1]": 3.0}
    for given in (draws, dict(reversed(draws.items()))):
        assert {n: c[0] for n, c in as_columns(given).items()} == expected
        assert {row["name"]: row["mean"] for row in summarise(given)} == expected


def test_a_result_with_a_reference_has_coverage(result, tmp_path):
    reference = {"x": np.random.default_rng(0).normal(size=(2000, 2))}
    view = FitView.from_result(result, reference=reference)
    nominal, actual = view.coverage
    # Standard error of a share of 2000 is at most 0.011; both sides are sampled.
    assert np.abs(actual - nominal).max() < 0.06
    assert view.level == "trusted"
    page = write_report([result, view], tmp_path / "page.html")
    assert "Coverage" in page.read_text(encoding="utf-8")


def test_a_reference_elsewhere_lowers_the_verdict(result):
    reference = {"x": np.random.default_rng(0).normal(3.0, 1.0, size=(500, 2))}
    view = FitView.from_result(result, reference=reference)
    assert view.level == "not trusted"
    assert "standard deviations off" in view.reasons[0]


def test_a_reference_of_other_names_is_shown_but_not_scored(result):
    view = FitView.from_result(result, reference={"z": np.zeros(10)})
    assert view.coverage is None
    assert view.mean_accuracy is None


def test_files_bring_the_same_view_back(tmp_path):
    view = dataclasses.replace(FitView.example(), khat=float("inf"), pair=("mu", "tau"))
    save_fit(view, tmp_path)
    again = read_fit(tmp_path)
    assert again.khat is None
    assert again.pair == view.pair
    assert np.allclose(again.columns["mu"], view.columns["mu"], atol=1e-7)
    assert np.allclose(again.log_weights, view.log_weights, atol=1e-7)
    json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)


def test_files_that_are_no_fits_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"result\.json"):
        read_fit(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged"):
        read_fit(tmp_path)


def test_names_are_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    view = FitView.example()
    view = dataclasses.replace(
        view, name=evil, columns={evil: view.columns["mu"], "b": view.columns["tau"]}
    )
    page = write_report([view, view], tmp_path / "page.html")
    assert evil not in page.read_text(encoding="utf-8")


def test_a_page_survives_what_fits_can_produce(tmp_path):
    view = FitView.example()
    history = {**view.history, "elbo": np.full(100, np.nan)}
    history["excess"] = np.zeros(100)
    odd = dataclasses.replace(
        view,
        history=history,
        columns={"constant": np.ones(500), "heavy": np.full(500, 1e30)},
        khat=float("inf"),
        log_evidence=float("-inf"),
    )
    text = write_report(odd, tmp_path / "odd.html").read_text(encoding="utf-8")
    assert "nan" not in text[text.index("<main") : text.index("</main")].lower()
    assert write_report([view, odd], tmp_path / "both.html").exists()
    with pytest.raises(ValueError, match="at least one"):
        write_report([], tmp_path / "none.html")


def test_many_parameters_are_cut_and_counted(tmp_path):
    view = FitView.example()
    columns = {f"x[{i}]": view.columns["mu"] for i in range(30)}
    view = dataclasses.replace(view, columns=columns)
    assert len(marginal_charts([view])) == 12
    assert "18 more parameters" in write_report(view, tmp_path / "a.html").read_text()
    assert len(pairs_chart(view).rows) == 6


def test_densities_integrate_to_one_and_find_modes():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(-2, 0.3, 2000), rng.normal(2, 0.3, 2000)])
    grid, height = density(values, -4, 4)
    assert np.trapezoid(height, grid) == pytest.approx(1.0, abs=0.01)
    assert height[64] < 0.05 * height.max()
    weights = np.where(values < 0, 1.0, 0.0) / 2000
    assert density(values, -4, 4, weights)[1][grid > 1].max() < 1e-6


def test_columns_and_kinds():
    draws = {"a": np.zeros((5, 2, 2)), "k": np.arange(5)}
    assert list(as_columns(draws)) == ["a[0,0]", "a[0,1]", "a[1,0]", "a[1,1]", "k"]
    assert len(as_columns(draws, 3)) == 3
    assert is_discrete(draws["k"])


def test_advice_is_that_of_the_verdict():
    view = FitView.example()
    poor = dataclasses.replace(view, level="not trusted", advice=("Try a flow.",))
    assert advice(poor) == ["Try a flow."]
    assert advice(dataclasses.replace(poor, level="trusted")) == []
    assert "charts" in advice(dataclasses.replace(poor, advice=()))[0]
    cut = dataclasses.replace(view, status="interrupted", num_bad=(3, 1))
    assert len(advice(cut)) == 2
    assert "--resume" in advice(cut)[0]


def test_results_pass_their_advice_on(result):
    far = {"x": np.random.default_rng(0).normal(3.0, 1.0, size=(500, 2))}
    view = FitView.from_result(result, reference=far)
    assert any("reference" in tip for tip in advice(view))
    assert view.named[0] in view.columns


def test_an_answer_without_training_has_a_page(tmp_path):
    view = FitView.example()
    history = {name: np.zeros(0) for name in view.history}
    untrained = dataclasses.replace(view, history=history)
    assert write_report(untrained, tmp_path / "alone.html").exists()
    assert write_report([view, untrained], tmp_path / "both.html").exists()
    save_fit(untrained, tmp_path / "fit")
    assert len(read_fit(tmp_path / "fit").history["step"]) == 0
