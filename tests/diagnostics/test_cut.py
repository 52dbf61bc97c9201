"""An answer that ends where its log density becomes NaN is not trusted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.diagnostics import Evidence, Kind, WeightEvidence, judge
from softcvi.diagnostics._cut import cut_share
from softcvi.diagnostics._thresholds import THRESHOLDS


def half_normal(outside, dim):
    def log_prob(x):
        return jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), outside)

    draws = np.random.default_rng(0).normal(size=(1000, dim))
    draws[:, 0] = np.abs(draws[:, 0])
    return softcvi.DensityTarget(log_prob, np.zeros(dim, np.float32)), draws


@pytest.mark.parametrize("dim", [1, 10])
def test_a_density_that_is_nan_beyond_half_of_the_bulk_is_cut(dim):
    share = cut_share(jax.random.key(0), *half_normal(jnp.nan, dim))
    assert share > THRESHOLDS.caution_cut


def test_minus_infinity_says_that_the_support_ends():
    assert cut_share(jax.random.key(0), *half_normal(-jnp.inf, 2)) == 0.0


def test_a_density_that_falls_before_it_is_nan_is_not_cut():
    def gamma(x):
        return jnp.sum(2.0 * jnp.log(x) - x)

    draws = np.random.default_rng(0).gamma(3.0, size=(1000, 1))
    target = softcvi.DensityTarget(gamma, np.ones(1, np.float32))
    assert cut_share(jax.random.key(0), target, draws) < THRESHOLDS.caution_cut


def test_a_cut_answer_gets_a_caution_with_a_remedy():
    weights = WeightEvidence(num_draws=4000, khat=0.1, ess=3500.0)
    verdict = judge(Evidence(weights=weights, cut=0.2))
    assert verdict.level == "caution"
    assert [f.kind for f in verdict.findings] == [Kind.CUT]
    assert "NaN" in verdict.reasons[0]
    assert "minus infinity" in verdict.advice[0]
    assert verdict.is_about_model  # no other guide helps


def test_a_fit_of_a_density_that_is_nan_on_half_of_the_bulk_is_not_trusted():
    target, _ = half_normal(jnp.nan, 2)
    result = softcvi.fit(jax.random.key(0), target, steps=2000, progress=False)
    assert Kind.CUT in [f.kind for f in result.verdict.findings]
    assert not result.verdict.trusted
