"""The fitted posterior: draws, densities, importance weights and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import softcvi
from softcvi import Posterior, guides
from softcvi.posterior import psis
from softcvi.targets import UnconstrainedSpace, positive


def log_prob(t):
    """A log-normal scale and a normal mean, with evidence two pi times e."""
    normal = -0.5 * (t["mu"] - 1.0) ** 2
    log_tau = jnp.log(t["tau"])
    return normal - 0.5 * log_tau**2 - log_tau + 1.0


@pytest.fixture(scope="module")
def posterior():
    like = {"mu": np.zeros((), np.float32), "tau": np.zeros((), np.float32)}
    target = softcvi.DensityTarget(
        log_prob,
        like,
        space=UnconstrainedSpace({"tau": positive()}),
        describe_with=lambda x: {**x, "ratio": x["mu"] / x["tau"]},
    )
    normal = guides.DiagonalNormal(jnp.array([0.8, 0.1]), jnp.array([1.2, 1.1]))
    return Posterior(guides.VectorGuide(normal, target.structure), target)


def test_draws_and_densities_are_in_model_coordinates(posterior):
    draws = posterior.sample(jax.random.key(0), 500)
    assert set(draws) == {"mu", "tau", "ratio"}
    assert draws["tau"].shape == (500,)
    assert np.min(draws["tau"]) > 0
    np.testing.assert_allclose(draws["ratio"], draws["mu"] / draws["tau"], rtol=1e-5)
    exact = stats.norm(0.8, 1.2).logpdf(draws["mu"])
    exact = exact + stats.lognorm(1.1, scale=np.exp(0.1)).logpdf(draws["tau"])
    np.testing.assert_allclose(posterior.log_prob(draws), exact, atol=1e-4)


def test_pieces_do_not_change_the_draws(posterior):
    small = Posterior(posterior.guide, posterior.target, particle_batch=7)
    one, other = (p.sample(jax.random.key(3), 20) for p in (posterior, small))
    np.testing.assert_allclose(one["mu"], other["mu"], rtol=1e-6)
    np.testing.assert_allclose(
        small.log_prob(other), posterior.log_prob(one), rtol=1e-5
    )


def test_pieces_can_be_drawn_inside_a_compiled_program(posterior):
    small = Posterior(posterior.guide, posterior.target, particle_batch=7)
    key = jax.random.key(3)
    compiled = jax.jit(lambda key: small.sample(key, 20))(key)
    np.testing.assert_allclose(compiled["mu"], small.sample(key, 20)["mu"], rtol=1e-6)


def test_importance_weights_correct_the_guide(posterior):
    sample = posterior.importance(jax.random.key(1), 4000)
    assert np.exp(sample.log_weights).sum() == pytest.approx(1.0)
    assert sample.khat < 0.5
    assert 1000 < sample.ess <= 4000
    # Evidence: two pi times e, known in closed form; four Monte Carlo errors.
    ratio = np.exp(sample.log_p - sample.log_q)
    error = ratio.std() / ratio.mean() / np.sqrt(4000)
    assert abs(sample.log_evidence - (np.log(2 * np.pi) + 1)) < 4 * error
    assert posterior.log_evidence(jax.random.key(1)) == sample.log_evidence
    corrected = posterior.resample(jax.random.key(2), 2000)
    assert set(corrected) == {"mu", "tau", "ratio"}
    error = 1.0 / np.sqrt(0.8 * 2000)
    assert abs(np.mean(corrected["mu"]) - 1.0) < 4 * error
    assert abs(np.mean(np.log(corrected["tau"]))) < 4 * error


def test_a_posterior_without_its_model_says_what_it_needs(posterior):
    alone = Posterior(posterior.guide, space=posterior.space)
    assert set(alone.sample(jax.random.key(0), 3)) == {"mu", "tau"}
    with pytest.raises(ValueError, match="target: importance weights need"):
        alone.importance(jax.random.key(0))
    with pytest.raises(ValueError, match="target: give the target"):
        Posterior(posterior.guide)
    with pytest.raises(ValueError, match="n: at least one draw"):
        posterior.sample(jax.random.key(0), 0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_psis_equals_arviz(scale):
    # 2,500 is a square: elsewhere tails differ by one draw, rounded up or down.
    ratios = scale * np.random.default_rng(0).standard_t(5, size=2500)
    ours, khat = psis(ratios)
    theirs, their_khat = array_stats.psislw(-ratios)
    assert khat == pytest.approx(float(their_khat), abs=1e-6)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_psis_of_bad_ratios():
    ratios = np.random.default_rng(0).normal(size=1000)
    ratios[:3] = [np.nan, -np.inf, -np.inf]
    weights, khat = psis(ratios)
    assert np.all(weights[:3] == -np.inf)
    assert np.isfinite(khat)
    assert np.exp(weights).sum() == pytest.approx(1.0)
    assert psis(np.full(10, np.nan))[1] == np.inf
    assert psis(np.zeros(1000))[1] < 0.5
    assert psis(1e-7 * np.random.default_rng(0).integers(0, 2, 1000))[1] < 0.5
    assert psis(np.zeros(3))[1] == np.inf  # too few to say
    # Hundreds of nats apart, up to what has no reciprocal in double precision.
    apart = np.append(np.full(200, -1e6), [-708.1, -504.0, -420.0, -188.0, 0.0])
    assert psis(apart)[1] > 0.7
