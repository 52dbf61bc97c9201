"""Chains correct a guide that is not trusted, if they agree."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma, polygamma

import softcvi
from softcvi.diagnostics import Kind, SamplerEvidence, judge
from softcvi.diagnostics._chain_draws import _agreement
from softcvi.fitting._correct import corrected

SHAPE = 2.0
GROUPS = 110


@pytest.mark.parametrize("size", [4, pytest.param(101, marks=pytest.mark.slow)])
def test_chains_from_a_wrong_guide_are_right_and_say_so(size):
    """Logarithms of gamma variables, from a normal that is half a deviation away."""
    target = softcvi.DensityTarget(
        lambda t: jnp.sum(SHAPE * t["x"] - jnp.exp(t["x"])), {"x": jnp.zeros(size)}
    )
    guide = softcvi.guides.mean_field(target)
    wrong = softcvi.fit(
        jax.random.key(0), target, guide, start=None, steps=1, progress=False
    )
    assert not wrong.verdict.trusted
    right = corrected(wrong)
    assert right.verdict.trusted
    assert right.draws_are == "from chains that began at draws of the guide"
    assert "from chains" in right.summary()
    mean, sd = digamma(SHAPE), np.sqrt(polygamma(1, SHAPE))
    draws = np.asarray(right.sample(jax.random.key(1), 8192)["x"], np.float64)
    # Five standard errors, of the mean and of a standard deviation.
    error = 5.0 / np.sqrt(right.chains.ess)
    assert np.max(np.abs(draws.mean(axis=0) - mean)) / sd < error
    assert np.max(np.abs(np.log(draws.std(axis=0) / sd))) < error


def test_chains_do_not_hide_that_the_density_is_infinite_somewhere():
    """They never enter such a place, which holds all of the mass."""

    def log_prob(x):
        is_corner = (x[0] > 2.0) & (x[1] > 1.0)
        return jnp.where(is_corner, jnp.inf, -0.5 * jnp.sum(x**2))

    target = softcvi.DensityTarget(log_prob, jnp.zeros(2))
    result = softcvi.fit(jax.random.key(0), target, steps=500, progress=False)
    assert result.verdict.level == "not trusted"
    assert Kind.INFINITE_DENSITY in {f.kind for f in result.verdict.findings}
    chains = SamplerEvidence(rhat=1.0, ess=4000.0, divergences=0, num_draws=4000)
    evidence = dataclasses.replace(result.evidence, weights=None, sampler=chains)
    assert judge(evidence).level == "not trusted"


@pytest.mark.parametrize("kind", ["fresh", "remember", "drift"])
def test_chains_agree_only_if_they_forget_where_they_began(kind):
    rng = np.random.default_rng(0)
    begin = rng.normal(size=(128, 5))
    x = rng.normal(size=(128, 64, 5))
    if kind == "remember":
        x[:, :, 3] += 0.3 * begin[:, None, 3]
    if kind == "drift":
        x[:, 32:, 2] += 0.4
    rhat, ess = _agreement(x, begin)
    assert (rhat < 1.01) == (kind == "fresh")
    if kind == "fresh":
        assert ess > 4000


@pytest.mark.slow
def test_chains_that_stay_in_separate_modes_are_no_answer():
    target = softcvi.DensityTarget(
        lambda t: jnp.sum(jnp.logaddexp(-8.0 * (t["x"] - 2) ** 2, -8.0 * t["x"] ** 2)),
        {"x": jnp.zeros(101)},
    )
    guide = softcvi.guides.mean_field(target)
    wide = softcvi.fit(
        jax.random.key(0), target, guide, start=None, steps=1, progress=False
    )
    assert not wide.verdict.trusted
    assert not corrected(wide).verdict.trusted


def test_steps_are_short_enough_for_a_narrow_neck():
    """Neal's funnel from a normal: right, or not trusted."""

    def funnel(t):
        log_scale, x = t["log_scale"], t["x"]
        squares = jnp.sum(x**2) * jnp.exp(-2 * log_scale)
        return -0.5 * (log_scale / 1.5) ** 2 - 0.5 * squares - x.size * log_scale

    like = {"log_scale": jnp.zeros(()), "x": jnp.zeros(5)}
    target = softcvi.DensityTarget(funnel, like)
    guide = softcvi.guides.mean_field(target)
    wrong = softcvi.fit(jax.random.key(0), target, guide, steps=300, progress=False)
    assert not wrong.verdict.trusted
    answer = corrected(wrong)
    draws = np.asarray(answer.sample(jax.random.key(1), 8000)["log_scale"])
    is_right = abs(draws.mean()) < 0.3 * 1.5 and abs(np.log(draws.std() / 1.5)) < 0.29
    assert is_right or not answer.verdict.trusted


@pytest.mark.slow
def test_a_hierarchy_whose_scale_may_be_zero_is_right_and_trusted():
    """Against quadrature: the groups integrate out in closed form."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=GROUPS) * np.sqrt(1 + 0.4**2) + 1.0
    data = jnp.asarray(y, jnp.float32)

    def log_density(x):
        tau = jnp.exp(x["log_tau"])
        theta = x["mu"] + tau * x["z"]
        prior = -0.5 * (x["mu"] / 5) ** 2 - 0.5 * tau**2 + x["log_tau"]
        return prior - 0.5 * jnp.sum(x["z"] ** 2) - 0.5 * jnp.sum((data - theta) ** 2)

    like = {"mu": jnp.zeros(()), "log_tau": jnp.zeros(()), "z": jnp.zeros(GROUPS)}
    target = softcvi.DensityTarget(log_density, like)
    result = softcvi.fit(jax.random.key(0), target, progress=False)
    assert result.verdict.trusted

    tau = np.linspace(1e-4, 3.0, 3000)
    variance = 1 + tau**2
    precision = GROUPS / variance + 1 / 25
    centre = np.sum(y) / variance / precision
    log_p = -0.5 * tau**2 - 0.5 * GROUPS * np.log(variance) - 0.5 * np.log(precision)
    log_p += 0.5 * precision * centre**2 - 0.5 * np.sum(y**2) / variance
    weights = np.exp(log_p - log_p.max())
    weights /= weights.sum()
    mean = weights @ tau
    sd = np.sqrt(weights @ (tau - mean) ** 2)
    draws = np.exp(np.asarray(result.sample(jax.random.key(1), 4000)["log_tau"]))
    assert abs(draws.mean() - mean) < 0.15 * sd
    assert abs(np.log(draws.std() / sd)) < 0.12
