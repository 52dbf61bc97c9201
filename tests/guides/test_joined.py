"""Guides joined from parts: sites in their order, mixtures with their weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import DensityTarget, SoftCVI, guides


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


def normals(count):
    base = guides.full_rank(np.zeros(2, np.float32))
    grid = np.stack(np.divmod(np.arange(count), 7), axis=1)
    places = (50 + 20 * grid).astype(np.float32)
    parts = [base.matched(jnp.asarray(place), jnp.eye(2)) for place in places]
    return guides.mixture(parts), places


def test_the_program_of_a_mixture_does_not_grow_with_its_components():
    target = DensityTarget(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2, np.float32))

    def operations(count):
        guide, _ = normals(count)

        def step(key):
            loss = lambda guide: SoftCVI().loss(key, guide, target)[0]  # noqa: E731
            return eqx.filter_grad(loss)(guide)

        return len(jax.make_jaxpr(step)(jax.random.key(0)).eqns)

    assert operations(40) == operations(2)


def test_a_stacked_mixture_has_the_draws_and_densities_of_its_components():
    guide, places = normals(7)
    kinds = guides.MixtureGuide(
        [
            guide.components[0],
            guides.student_t(np.zeros(2, np.float32)),
            *guide.components[1:],
        ]
    )
    x = jnp.asarray(places[3] + 0.5)
    for mixture in (guide, kinds):
        parts = np.array([float(part.log_prob(x)) for part in mixture.components])
        expected = np.logaddexp.reduce(parts) - np.log(len(parts))
        np.testing.assert_allclose(mixture.log_prob(x), expected, rtol=1e-5)
        keys = jax.random.split(jax.random.key(0), 700 * len(parts))
        for draw in (
            mixture.sample,
            lambda key, m=mixture: m.from_noise(m.sample_noise(key)),
        ):
            draws = np.asarray(jax.vmap(draw)(keys))
            gaps = np.linalg.norm(draws[:, None] - places, axis=-1)
            near = (gaps < 6).sum(axis=0)
            # Four standard errors of a count of 700.
            assert np.all(np.abs(near - 700) < 4 * np.sqrt(700))


def test_components_that_cannot_be_stacked_stay_apart():
    like = np.zeros(2, np.float32)
    small = {"layers": 1, "width": 3, "knots": 1}
    flows = [
        guides.coupling_flow(like, key=jax.random.key(i), **small) for i in range(2)
    ]
    guide = guides.mixture(flows)
    assert len(guide.groups) == 2
    parts = [float(flow.log_prob(jnp.ones(2))) for flow in flows]
    expected = np.logaddexp(*parts) - np.log(2)
    np.testing.assert_allclose(guide.log_prob(jnp.ones(2)), expected, rtol=1e-5)
