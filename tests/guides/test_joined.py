"""Guides joined from parts: sites in their order, mixtures with their weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import guides


def normal(loc, scale=1.0):
    return guides.DiagonalNormal(jnp.asarray(loc, float), jnp.asarray(scale, float))


def around(condition):
    return guides.DiagonalNormal(condition, jnp.full(condition.shape, 0.1))


def identity(condition):
    return condition


def test_a_site_sees_the_earlier_ones_in_the_order_given():
    # "a" comes last although a dict as pytree would sort it first.
    child = guides.NetworkDistribution(identity, around, (1,), (1,))
    guide = guides.SiteGuide(
        {"z": normal([5.0]), "a": guides.Conditional(child, on=("z",))}
    )
    keys = jax.random.split(jax.random.key(0), 500)
    draws = jax.jit(jax.vmap(paramax.unwrap(guide).sample))(keys)
    gap = np.asarray(draws["a"] - draws["z"])
    assert gap.std() == pytest.approx(0.1, rel=0.15)
    assert np.asarray(draws["a"]).std() == pytest.approx(1.0, rel=0.15)


def test_sites_out_of_order_and_without_condition_are_refused():
    child = guides.NetworkDistribution(identity, around, (1,), (1,))
    with pytest.raises(ValueError, match=r"sites\['a'\]: conditioned on \['z'\]"):
        guides.SiteGuide({"a": guides.Conditional(child, on=("z",))})
    with pytest.raises(ValueError, match="distribution: is not conditional"):
        guides.Conditional(normal([0.0]), on=("z",))


def test_a_mixture_is_the_weighted_sum():
    parts = [guides.mean_field(np.zeros(1, np.float32), scale=s) for s in (0.5, 3.0)]
    guide = guides.MixtureGuide(parts, jnp.log(jnp.array([0.3, 0.7])))
    axis = np.linspace(-15, 15, 2001, dtype=np.float32)[:, None]

    @eqx.filter_jit
    def program(guide, keys):
        g = paramax.unwrap(guide)
        return jax.vmap(g.log_prob)(axis), jax.vmap(g.sample)(keys)

    log_prob, draws = program(guide, jax.random.split(jax.random.key(0), 4000))
    assert np.trapezoid(np.exp(log_prob), axis[:, 0]) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(guide.weights, [0.3, 0.7], rtol=1e-6)
    variance = 0.3 * 0.25 + 0.7 * 9.0
    # Four standard errors of a variance with the kurtosis of this mixture.
    kurtosis = 3 * (0.3 * 0.5**4 + 0.7 * 3.0**4) / variance**2
    error = np.sqrt((kurtosis - 1) / 4000)
    assert abs(np.var(np.asarray(draws)) / variance - 1) < 4 * error


def test_mixtures_need_equal_structures():
    one, other = guides.mean_field({"x": jnp.zeros(2)}), guides.mean_field(jnp.zeros(2))
    with pytest.raises(ValueError, match="components: a mixture needs at least 2"):
        guides.mixture([one])
    with pytest.raises(ValueError, match=r"components\[1\]: "):
        guides.mixture([one, other])
