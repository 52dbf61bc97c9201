"""The ladder: rungs in order, and what makes it stop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.ladder import ChainDraws
from softcvi.ladder._chains import nuts_in_base_space
from softcvi.ladder._rungs import Climb


def log_gamma_density(theta):
    """Logarithms of gamma variables of shape 4: skewed, mean and sd known."""
    return jnp.sum(4.0 * theta["x"] - jnp.exp(theta["x"]))


def test_a_skewed_posterior_is_answered_by_weighted_draws_of_a_t():
    """Digamma and trigamma of 4 are 1.2561 and 0.2838."""
    target = softcvi.DensityTarget(log_gamma_density, {"x": jnp.zeros(3)})
    answer = softcvi.fit_until(jax.random.key(0), target, progress=False, steps=2000)
    assert answer.trusted
    assert answer.chain is None
    assert [rung.name for rung in answer.rungs] == ["full-rank Student's t"]
    assert answer.result.choices["guide"].startswith("full-rank Student's t")
    n = 10_000
    x = np.asarray(answer.sample(jax.random.key(1), n)["x"])
    sd = np.sqrt(0.2838)
    # Resampled from four times as many, of which more than a half count.
    error = sd / np.sqrt(n)
    np.testing.assert_allclose(x.mean(axis=0), 1.2561, atol=5 * error)
    np.testing.assert_allclose(x.std(axis=0), sd, rtol=0.05)


def test_far_from_any_guide_many_dimensions_go_straight_to_chains():
    """Ten pairs of a scale and its variable, centred: no normal and no flow will do."""

    def funnels(theta):
        x = theta["x"].reshape(10, 2)
        scale = -0.5 * (x[:, 0] / 3.0) ** 2
        return jnp.sum(scale - 0.5 * (x[:, 1] * jnp.exp(-x[:, 0])) ** 2 - x[:, 0])

    target = softcvi.DensityTarget(funnels, {"x": jnp.zeros(20)})
    climb = Climb(jax.random.key(0), target, 0.7, 60.0, 500, False)
    assert not climb.simplest_guide()
    before = list(climb.rungs)
    assert min(rung.khat for rung in before) > 1.0
    assert not climb.flows()
    assert climb.rungs == before


def test_a_chain_in_the_base_space_answers_where_no_normal_will_do():
    def banana(theta):
        x, y = theta["x"][0], theta["x"][1]
        return -0.5 * (x / 3.0) ** 2 - 0.5 * (y - 0.5 * x**2) ** 2

    target = softcvi.DensityTarget(banana, {"x": jnp.zeros(2)})
    guide = softcvi.guides.full_rank(target).matched(
        jnp.asarray([0.0, 4.5]), jnp.eye(2)
    )
    chain = nuts_in_base_space(jax.random.key(0), softcvi.Posterior(guide, target))
    x = np.asarray(chain.draws["x"])[:, 0]
    assert chain.rhat < 1.05
    assert abs(x.mean()) < 4 * 3.0 / np.sqrt(chain.ess)
    np.testing.assert_allclose(x.std(), 3.0, rtol=4 / np.sqrt(chain.ess))


@pytest.mark.parametrize(
    ("rhat", "ess", "divergences", "trusted"),
    [(1.0, 900, 0, True), (1.1, 900, 0, False), (1, 90, 0, False), (1, 900, 50, False)],
)
def test_chains_are_trusted_that_agree_mix_and_seldom_diverge(
    rhat, ess, divergences, trusted
):
    chain = ChainDraws({"x": np.zeros(4000)}, rhat, ess, divergences)
    assert chain.trusted == trusted
    assert str(chain).startswith("trusted" if trusted else "not trusted")
