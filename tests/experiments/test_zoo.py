"""The zoo: models trace, references are sound, and a bench run survives errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from softcvi_experiments import zoo
from softcvi_experiments.zoo._build import MAX_RHAT, MIN_ESS, latent_shapes
from softcvi_experiments.zoo._outcome import Outcome, pareto_khat
from softcvi_experiments.zoo._table import silent_failures

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", zoo.names())
def test_density_and_gradient_are_finite_at_a_reference_draw(name):
    model, reference = zoo.get(name), zoo.load_reference(name)
    draw = {k: jnp.asarray(v[0], float) for k, v in reference.draws.items()}

    @jax.jit
    def value_and_grad(draw):
        return jax.value_and_grad(
            lambda d: log_density(model.model, model.args, dict(model.kwargs), d)[0]
        )(draw)

    value, gradient = value_and_grad(draw)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient.values())


@pytest.mark.parametrize("name", zoo.names())
def test_reference_meets_the_bar_and_fits_its_model(name):
    model, reference = zoo.get(name), zoo.load_reference(name)
    rhat, ess = reference.worst
    assert rhat < MAX_RHAT
    assert ess > MIN_ESS
    shapes = latent_shapes(model)
    for group in ("mean", "sd", "rhat", "ess", "quantiles", "draws"):
        assert set(getattr(reference, group)) == set(shapes)
    for site, shape in shapes.items():
        assert reference.mean[site].shape == shape
        assert reference.draws[site].shape == (1_000, *shape)
        assert np.isfinite(reference.draws[site]).all()
    # The stored draws are a thinned sample of the same distribution: 1,000 draws have
    # standard errors of 0.03 sd, and the largest of up to 83 stays below five of them.
    assert zoo.score(model, reference, reference.draws).mean_error < 0.16


def test_halves_are_stratified_and_references_small():
    halves = zoo.names("development"), zoo.names("report")
    assert len(halves[0]) == len(halves[1]) >= 11
    for half in halves:
        kinds = {zoo.get(n).kind for n in half}
        assert {"regression", "hierarchical", "geometry", "multimodal"} <= kinds
    folder = zoo._reference.FOLDER
    assert sum(f.stat().st_size for f in folder.glob("*.npz")) < 3_000_000


def test_symmetrised_reference_weighs_both_modes_alike():
    model = zoo.get("mixture_unordered")
    shares = model.modes.shares(zoo.load_reference("mixture_unordered").draws)
    # A thousand draws of a half: three standard errors are 0.047.
    np.testing.assert_allclose(shares, 0.5, atol=0.05)


def test_direct_draws_have_the_exact_moments():
    reference = zoo.load_reference("heavy_tails")
    scale = np.array([10.0, 1.0, 0.1, 1.0, 30.0])
    np.testing.assert_allclose(reference.sd["x"], scale * np.sqrt(5 / 3), rtol=0.02)


def test_score_finds_the_worst_parameter():
    model, reference = zoo.get("banana"), zoo.load_reference("banana")
    rng = np.random.default_rng(0)
    good = model.reference.sample(rng, 20_000)
    assert zoo.score(model, reference, good).good
    moved = good | {"y": good["y"] + 2 * reference.sd["y"]}
    scored = zoo.score(model, reference, moved)
    assert scored.mean_error_at == "y"
    np.testing.assert_allclose(scored.mean_error, 2.0, atol=0.05)
    assert zoo.score(model, reference, good | {"x": good["x"] * np.nan}).mean_error == (
        np.inf
    )
    with pytest.raises(ValueError, match="draws lack the sites"):
        zoo.score(model, reference, {"x": good["x"]})


def test_mode_weights_are_scored():
    model, reference = zoo.get("bimodal"), zoo.load_reference("bimodal")
    one_mode = {"x": model.modes.centres[:1] + np.zeros((100, 2))}
    np.testing.assert_allclose(
        zoo.score(model, reference, one_mode).mode_error, 0.3, atol=1e-12
    )


def test_degenerate_weights_have_no_small_khat():
    assert pareto_khat(np.array([0.0] * 999 + [1e6])) == np.inf


def test_builder_makes_a_reference(tmp_path):
    reference = zoo.build_reference(zoo.get("bimodal"), effort=0.02)
    reference.save(tmp_path / "bimodal.npz")
    loaded = zoo.load_reference("bimodal", tmp_path)
    np.testing.assert_allclose(loaded.mean["x"], reference.mean["x"])
    assert loaded.provenance["method"].startswith("independent draws")
    with pytest.raises(FileNotFoundError, match="make it with"):
        zoo.load_reference("funnel", tmp_path)


def test_case_scores_a_method_and_keeps_errors(monkeypatch):
    from softcvi_experiments.zoo import _peers

    exact = zoo.get("banana").reference

    def perfect(model, seed):
        return Outcome(exact.sample(np.random.default_rng(seed), 20_000), trusted=True)

    monkeypatch.setattr(_peers, "nuts", perfect)
    record = zoo.run_case("banana", "nuts")
    assert record["status"] == "ok"
    assert record["good"]
    assert silent_failures([record]) == []

    def broken(model, seed):
        raise RuntimeError("no luck")

    monkeypatch.setattr(_peers, "nuts", broken)
    record = zoo.run_case("banana", "nuts")
    assert record["status"] == "error"
    assert "no luck" in record["message"]


def test_bench_resumes_and_reports(tmp_path):
    lines = []
    options = {"methods": ("auto_normal",), "out": tmp_path, "report": lines.append}
    records = zoo.run_zoo(["banana"], **options)
    assert [r["status"] for r in records] == ["ok"], records
    # A factorised normal finds the middle of the banana and none of its bend.
    assert not records[0]["good"]
    assert records[0]["reference_log_prob"] < -6.5
    assert "banana" in (tmp_path / "zoo.md").read_text()
    assert (tmp_path / "zoo.png").stat().st_size > 10_000
    zoo.run_zoo(["banana"], **options)
    assert len(lines) == 1
    with pytest.raises(ValueError, match="are not known"):
        zoo.run_zoo(["banana"], methods=("magic",), out=tmp_path)
