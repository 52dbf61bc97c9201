"""What the neural additive model's table and figure must show."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import paramax
import pytest
from softcvi_experiments.appendix import (
    AdditiveSettings,
    PlainAdam,
    additive_data,
    additive_guide,
    additive_target,
    fit_keeping_best,
    reproduce_neural_additive,
)
from softcvi_experiments.appendix._additive_metrics import centred_truth

from softcvi.fitting import Silent
from softcvi.guides import mean_field
from softcvi.objectives import ELBO
from softcvi.targets import DensityTarget

pytestmark = pytest.mark.slow

SETTINGS = AdditiveSettings(steps=500, every=50, num_draws=200, validation="predictive")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return reproduce_neural_additive(
        tmp_path_factory.mktemp("additive"),
        methods=["elbo", "softcvi-1"],
        widths=[6],
        rates=[1e-4, 1e-2],
        num_seeds=1,
        settings=SETTINGS,
    )


def test_sizes_are_those_of_the_paper():
    data = jax.eval_shape(additive_data, jr.key(0))
    sizes = {name: len(part["y"]) for name, part in data.items()}
    assert sizes == {"train": 300, "validation": 150, "test": 1000}
    assert additive_target(data["train"], 50).structure.size == 1500
    assert additive_target(data["train"], 100).structure.size == 3000
    guide = paramax.unwrap(additive_guide(jr.key(0), 50))
    assert jnp.abs(guide.distribution.loc).max() <= 1
    np.testing.assert_allclose(guide.distribution.scale, 0.02, rtol=1e-3)


def test_every_seed_and_rate_is_on_record_beside_the_published_table(result):
    assert len(result.records) == 2 * 2
    assert {record["fits_in_program"] for record in result.records} == {2}
    assert "published" in result.table
    assert {path.name for path in result.files} >= {"table.md", "rates.md"}


def test_validation_prefers_the_rate_that_learns(result):
    scores = {(r["method"], r["rate"]): r["validation_score"] for r in result.records}
    for method in ("elbo", "softcvi-1"):
        assert scores[method, 1e-2] > scores[method, 1e-4] + 0.05


def test_no_fit_beats_the_truth_and_the_elbo_comes_near_it(result):
    for record in result.records:
        # The true function scores -2.518 up to the noise of 1000 points.
        assert record["log_predictive_density"] < -2.518 + 4 * 0.71 / 1000**0.5
    best = [
        r["log_predictive_density"]
        for r in result.records
        if r["method"] == "elbo" and r["rate"] == 1e-2
    ]
    assert np.mean(best) > -2.75


def test_components_follow_the_truth_and_intervals_cover_it(result):
    shown = next(
        r
        for r in result.records
        if r["method"] == "elbo" and r["rate"] == 1e-2 and "components" in r
    )
    curves = {name: np.array(v) for name, v in shown["components"].items()}
    truth = np.asarray(centred_truth(jnp.asarray(curves["grid"])))
    for mean, component in zip(curves["mean"], truth, strict=True):
        assert np.corrcoef(mean, component)[0, 1] > 0.85
    inside = (curves["low"] < truth) & (truth < curves["high"])
    assert inside[1:].mean() > 0.3
    assert np.all(curves["low"] < curves["high"])


def test_the_best_check_is_kept_though_later_ones_are_worse():
    observed = jnp.array([[1.0], [3.0]])
    targets = DensityTarget(_log_prob, jnp.zeros(1), observed=observed)
    guides = eqx.filter_vmap(lambda _: mean_field(jnp.zeros(1)))(observed)
    kept = fit_keeping_best(
        jr.split(jr.key(0), 2),
        targets,
        guides,
        jnp.array([[0.5], [1.0]]),
        lambda key, guide, best: -jnp.sum((guide.distribution.loc - best) ** 2),
        objective=ELBO(),
        optimizers=PlainAdam(jnp.array([0.02, 0.02])),
        steps=400,
        every=5,
        reporter=Silent(),
    )
    # The means pass these places on their way to 1 and 3.
    np.testing.assert_allclose(kept.guide.distribution.loc, [[0.5], [1.0]], atol=0.1)
    assert bool((kept.scores[:, -1] < kept.score).all())
    assert bool((kept.step < 400).all())


def _log_prob(x, observed):
    return -0.5 * jnp.sum((x - observed) ** 2)


def test_steps_that_miss_the_last_check_are_refused():
    with pytest.raises(ValueError, match="multiple of the 50"):
        AdditiveSettings(steps=70, every=50)
