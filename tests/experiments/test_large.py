"""The study of large posteriors: answers, scores, the page and the small form."""

import jax
import numpy as np
import pytest
from softcvi_experiments import large
from softcvi_experiments import study as driver
from softcvi_experiments.large._chains import bridge
from softcvi_experiments.large._moments import Moments
from softcvi_experiments.large._table import meets
from softcvi_experiments.large._worker import run_case


@pytest.mark.parametrize("name", list(large.CASES))
def test_small_form_has_a_finite_density(name):
    posterior = large.get_case(name, small=True)
    particle = posterior.target.initial_particle(jax.random.key(0))
    assert np.isfinite(posterior.target.log_density(particle))


@pytest.mark.parametrize("name", ["normal-300", "walk-150", "many-well-32"])
def test_exact_log_evidence_agrees_with_importance_sampling(name):
    posterior = large.get_case(name, small=True)
    rng = np.random.default_rng(0)
    mean = np.concatenate([np.ravel(v) for v in posterior.mean.values()])
    sd = np.concatenate([np.ravel(v) for v in posterior.sd.values()])
    noise = rng.standard_t(5, (200_000, mean.size))
    structure = posterior.target.structure
    draws = mean + 1.5 * sd * noise
    values = jax.jit(
        jax.vmap(lambda x: posterior.target.log_density(structure.unravel(x)))
    )(draws)
    log_q = np.sum(
        np.log(0.3796066898224944 / (1 + noise**2 / 5) ** 3 / (1.5 * sd)), axis=1
    )
    ratios = np.asarray(values, np.float64) - log_q
    weights = np.exp(ratios - ratios.max())
    estimate = np.log(weights.mean()) + ratios.max()
    error = weights.std() / weights.mean() / np.sqrt(len(weights))
    assert abs(estimate - posterior.log_evidence) < 4 * error


def test_moments_of_parts_are_those_of_all_draws():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (100, 4))
    joined = Moments.of([{"x": draws[:30]}, {"x": draws[30:]}])
    np.testing.assert_allclose(joined.mean["x"], draws.mean(axis=0))
    np.testing.assert_allclose(joined.sd["x"], draws.std(axis=0))
    again = Moments.from_arrays(joined.arrays())
    np.testing.assert_array_equal(again.sd["x"], joined.sd["x"])


def test_joined_chains_include_what_parts_them():
    chains = [Moments({"x": np.array(m)}, {"x": np.ones(())}, 10.0) for m in (0.0, 2.0)]
    joined = Moments.joined(chains)
    assert joined.mean["x"] == 1.0
    assert joined.sd["x"] == pytest.approx(np.sqrt(2.0))


def test_score_counts_parameters_within_the_bounds():
    right = Moments({"x": np.zeros(4)}, {"x": np.ones(4)}, np.inf)
    found = Moments(
        {"x": np.array([0.0, 0.05, 0.2, 0.0])}, {"x": np.array([1, 1, 1, 1.2])}, 1e4
    )
    score = found.compare(right, large.Bounds())
    assert score["share_close"] == 0.5
    assert score["mean_error"] == pytest.approx(0.2)
    assert score["sd_high"] == pytest.approx(1.2)


def test_bridge_between_two_normals():
    rng = np.random.default_rng(0)
    # p = exp(5) N(0.3, 1.2^2) against q = N(0, 1).
    at_p, at_q = 0.3 + 1.2 * rng.normal(size=20_000), rng.normal(size=20_000)

    def ratio(x):
        return 5.0 - 0.5 * ((x - 0.3) / 1.2) ** 2 - np.log(1.2) + 0.5 * x**2

    assert abs(bridge(ratio(at_p), ratio(at_q)) - 5.0) < 0.02


def test_study_runs_scores_and_continues(tmp_path, monkeypatch):
    def in_process(module, groups, **_):
        for group in groups:
            for task in group:
                yield task, run_case(**task)

    monkeypatch.setattr(driver, "run_tasks", in_process)
    study = large.Study(("walk-150",), ("fit", "elbo"), small=True)
    lines = []
    scores = large.run_study(study, tmp_path, report=lines.append)
    by_method = {score["method"]: score for score in scores}
    assert set(by_method) == {"fit", "elbo"}
    assert meets(by_method["fit"])
    assert by_method["fit"]["made"] is not None
    assert "walk-150" in (tmp_path / "large.md").read_text()
    lines.clear()
    large.run_study(study, tmp_path, report=lines.append)
    assert not lines


@pytest.mark.slow
def test_long_chains_are_the_answer_where_there_is_no_closed_form(tmp_path):
    task = {"case": "logistic-100", "method": "reference", "key": 0, "small": True}
    [run] = run_case(**task, out=str(tmp_path))["runs"]
    assert run["status"] == "ok"
    assert run["ess"] > 20
    assert np.isfinite(run["log_evidence"])


def test_unknown_case_is_named():
    with pytest.raises(ValueError, match="case: no 'x'"):
        large.get_case("x")
