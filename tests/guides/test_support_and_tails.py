"""Errors that tails, supports and conditions had: each of these once passed by."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from scipy import stats

from softcvi import guides
from softcvi.guides._uniform import joined

LIKE = {"x": np.zeros(2, np.float32)}


def test_a_guide_without_a_condition_refuses_one():
    site = guides.DiagonalNormal(jnp.zeros(2), jnp.ones(2))
    normal = guides.mean_field(LIKE)
    for guide in (
        guides.SiteGuide({"x": site}),
        guides.MixedGuide(normal, {"k": jnp.zeros((1, 2))}),
    ):
        particle = guide.sample(jax.random.key(0))
        with pytest.raises(ValueError, match=r"guide: a .* does not depend on a"):
            guide.sample(jax.random.key(0), condition=jnp.zeros(3))
        with pytest.raises(ValueError, match=r"guide: a .* does not depend on a"):
            guide.log_prob(particle, condition=jnp.zeros(3))


@pytest.mark.parametrize("value", [-1, 3, 0.5])
def test_a_categorical_has_no_mass_outside_its_values(value):
    categorical = guides.Categorical(jnp.zeros((2, 3)))
    assert categorical.log_prob(jnp.array([1.0, value])) == -np.inf
    assert np.isfinite(categorical.log_prob(jnp.array([1, 2])))


def test_a_bernoulli_has_no_mass_outside_zero_and_one():
    assert guides.Bernoulli(jnp.zeros(2)).log_prob(jnp.array([1, 2])) == -np.inf


def test_the_smallest_uniform_number_is_as_rare_as_it_should_be():
    """A t with 3 degrees of freedom reaches 9e7 once in 1e24 draws."""
    zero = jnp.zeros((), jnp.uint32)
    smallest = joined(zero, zero, jnp.float32)
    assert 2.0**-66 < smallest < 2.0**-63
    t = guides.StudentT(jnp.full((), 3.0), jnp.zeros(()), jnp.ones(()))
    # The first word of the generator is zero once in four billion draws: what comes
    # out must then still vary with the second.
    second = jnp.asarray([0, 2**16, 2**31], jnp.uint32)
    u = joined(jnp.zeros_like(second), second, jnp.float32)
    noise = jnp.stack([u, jnp.zeros(3)], axis=1)
    draws = np.asarray(jax.vmap(paramax.unwrap(t)._from_noise)(noise))
    # The radius is sqrt(3) u^(-1/3) there.
    np.testing.assert_allclose(draws, np.sqrt(3) * np.asarray(u) ** (-1 / 3), rtol=1e-4)
    assert np.all(np.diff(draws) < 0)


def test_far_draws_of_a_full_rank_t_have_the_right_share():
    """The share of draws beyond a far radius, from the distribution of the ratio."""
    guide = guides.full_rank_t({"x": np.zeros(1, np.float32)}, df=4)

    @eqx.filter_jit
    def draw(guide, keys):
        return jax.vmap(lambda k: guide.sample(k)["x"][0])(keys)

    draws = np.abs(
        np.asarray(draw(guide, jax.random.split(jax.random.key(1), 400_000)))
    )
    scale = np.sqrt(0.5)  # of variance one
    for x in (5.0, 20.0):
        expected = 2 * stats.t.sf(x / scale, 4)
        error = np.sqrt(expected / draws.size)
        assert abs(np.mean(draws > x) - expected) < 4 * error
    assert np.isfinite(draws).all()
