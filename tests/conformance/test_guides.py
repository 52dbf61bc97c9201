"""The battery of every guide, and of every function that builds one."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import DensityTarget, Posterior, guides, load
from softcvi.targets import ModelSpace, Structure, UnconstrainedSpace, positive


def sites(dtype):
    mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(1), dtype=dtype)
    label = guides.NetworkDistribution(mlp, guides.Categorical, (), (2,))
    mu = guides.DiagonalNormal(jnp.zeros(2, dtype), jnp.ones(2, dtype))
    tau = guides.DiagonalNormal(jnp.full((), 0.5, dtype), jnp.ones((), dtype))
    return guides.SiteGuide(
        {
            "z": mu,
            "k": guides.Conditional(label, on=("z",)),
            "a": guides.Folded(tau),
            "b": guides.Bernoulli(jnp.zeros(3, dtype)),
        }
    )


def two(dtype):
    parts = [guides.mean_field(like(dtype)), guides.student_t(like(dtype))]
    return guides.MixtureGuide(parts, jnp.array([0.5, -0.5], dtype))


def mixed(dtype):
    guide = guides.MixedGuide(guides.mean_field(like(dtype)), {"k": jnp.zeros((2, 3))})
    slopes = 0.3 * jax.random.normal(jax.random.key(2), (2, 3, 3), dtype)
    return eqx.tree_at(lambda g: g.slopes["k"], guide, slopes)


def like(dtype):
    return {"x": np.zeros(2, dtype), "y": np.zeros((), dtype)}


def grouped(dtype):
    pairs = {"x": np.zeros((3, 2), dtype), "y": np.zeros(2, dtype)}
    guide = guides.hierarchical(pairs, local=("x",))
    return jax.tree.map(
        lambda leaf: leaf.astype(dtype) + 0.1 if eqx.is_inexact_array(leaf) else leaf,
        guide,
    )


def product(dtype):
    parts = [
        guides.full_rank(np.zeros(2, dtype)),
        guides.mean_field(np.zeros(1, dtype)),
    ]
    return guides.ProductGuide(parts, [[2, 0], [1]], like(dtype))


def mapped(dtype):
    space = UnconstrainedSpace({"y": positive()})
    return guides.MappedGuide(guides.mean_field(like(dtype)), space)


CASES = {
    guides.ProductGuide: product,
    guides.MappedGuide: mapped,
    guides.HierarchicalGuide: grouped,
    guides.VectorGuide: lambda t: guides.full_rank(like(t), scale=2.0),
    guides.SiteGuide: sites,
    guides.MixtureGuide: two,
    guides.MixedGuide: mixed,
}
SMALL = {"key": jax.random.key(0), "layers": 1, "width": 3, "knots": 1}
BUILDERS = {
    guides.mean_field: guides.mean_field,
    guides.full_rank: guides.full_rank,
    guides.full_rank_t: guides.full_rank_t,
    guides.low_rank: guides.low_rank,
    guides.low_rank_at: lambda x: guides.low_rank_at(
        x, jnp.zeros(3), jnp.ones(3), jnp.ones((3, 1))
    ),
    guides.student_t: guides.student_t,
    guides.scalar_mixtures: guides.scalar_mixtures,
    guides.hierarchical: lambda x: guides.hierarchical(x, local=("x",)),
    guides.spline_flow: lambda x: guides.spline_flow(x, **SMALL),
    guides.coupling_flow: lambda x: guides.coupling_flow(x, **SMALL),
    guides.mixture: lambda x: guides.mixture([guides.mean_field(x)] * 2),
    guides.whitened: lambda x: guides.whitened(
        guides.mean_field(x), jnp.zeros(3), jnp.eye(3)
    ),
}


def test_the_battery_knows_every_exported_guide(exported):
    assert exported(guides, guides.AbstractGuide) == set(CASES)
    public = {getattr(guides, name) for name in guides.__all__}
    assert {f for f in public if inspect.isfunction(f)} == {*BUILDERS, guides.mixed}


@pytest.mark.parametrize("build", BUILDERS, ids=lambda f: f.__name__)
def test_builders_fit_the_particle(build):
    guide = BUILDERS[build](like(np.float32))
    assert Structure(like(np.float32)).difference(guide.structure) is None
    assert 0 < guide.suggested_rate < 0.1
    assert guide.covers_reals


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_every_guide_comes_back_from_a_file(cls, tmp_path):
    posterior = Posterior(CASES[cls](np.float32), space=ModelSpace())
    posterior.save(tmp_path / "fit.softcvi")
    again = load(tmp_path / "fit.softcvi").guide
    assert isinstance(again, cls)
    pairs = [
        jax.tree.leaves(eqx.filter(guide, eqx.is_array))
        for guide in (posterior.guide, again)
    ]
    assert all(np.array_equal(a, b) for a, b in zip(*pairs, strict=True))


def test_mixed_needs_the_number_of_values():
    target = DensityTarget(lambda x: 0.0 * x["k"], {"k": np.zeros(2, np.int32)})
    with pytest.raises(ValueError, match=r"guide: \['k'\] are discrete"):
        guides.mixed(target)


@eqx.filter_jit
def program(guide, keys):
    unwrapped = paramax.unwrap(guide)
    particles, joint = jax.vmap(unwrapped.sample_and_log_prob)(keys)
    drawn = jax.vmap(unwrapped.sample)(keys)

    def score(guide):
        values = jax.vmap(paramax.unwrap(guide).log_prob)(particles)
        return jnp.sum(values), values

    gradient, again = eqx.filter_grad(score, has_aux=True)(guide)
    return particles, drawn, joint, again, gradient


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_draws_densities_and_gradients(cls, dtype):
    guide = CASES[cls](dtype)
    keys = jax.random.split(jax.random.key(0), 16)
    particles, drawn, joint, again, gradient = program(guide, keys)

    one = jax.tree_util.tree_map(lambda leaf: leaf[0], particles)
    assert guide.structure.difference(Structure(one)) is None
    assert Structure(one).dtypes == guide.structure.dtypes
    assert joint.shape == (16,)
    assert joint.dtype == again.dtype == dtype
    rounding = 1e-5 if dtype == jnp.float32 else 1e-12
    np.testing.assert_allclose(joint, again, rtol=rounding, atol=rounding)
    for name, leaf in drawn.items():
        np.testing.assert_allclose(leaf, particles[name], atol=rounding)
    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(gradient)]
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves)
    assert all(np.any(leaf != 0) for leaf in leaves)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_capabilities_agree_with_what_can_be_done(cls):
    guide = CASES[cls](jnp.float32)
    mean, covariance = jnp.zeros(guide.structure.size), jnp.eye(guide.structure.size)
    matched = guide.matched(mean, covariance)
    assert guide.can_be_matched == (matched is not None)
    if matched is not None:
        assert matched.suggested_rate == guide.tuned_rate == matched.tuned_rate
    key = jax.random.key(3)
    if guide.has_base:
        z = guide.sample_base(key)
        particle, log_det = guide.from_base(z)
        flat = guide.structure.ravel(particle)
        jacobian = jax.jacobian(lambda z: guide.structure.ravel(guide.from_base(z)[0]))
        expected = np.linalg.slogdet(np.asarray(jacobian(z)))[1]
        np.testing.assert_allclose(log_det, expected, atol=1e-5)
        assert flat.shape == z.shape
    assert guide.has_noise
    noise = guide.sample_noise(key)
    assert guide.noise_owner().shape == noise.shape
    assert guide.noise_owner().max() < guide.structure.size
    particle = guide.from_noise(noise)
    assert Structure(particle) == guide.structure


def test_wrapped_guides_can_be_called_as_they_are():
    guide = guides.mean_field(like(np.float32), scale=2.0)
    particle = guide.sample(jax.random.key(0))
    again = paramax.unwrap(guide)
    np.testing.assert_array_equal(guide.log_prob(particle), again.log_prob(particle))
    np.testing.assert_array_equal(particle["x"], again._sample(jax.random.key(0))["x"])


def test_a_rate_belongs_to_the_guide_and_not_to_who_placed_it():
    mean, covariance = jnp.ones(3), 2.0 * jnp.eye(3)
    for build in (guides.full_rank, guides.full_rank_t):
        fresh = build(like(np.float32))
        matched = fresh.matched(mean, covariance)
        by_hand = guides.whitened(fresh, mean, jnp.linalg.cholesky(covariance))
        assert matched.suggested_rate == by_hand.suggested_rate == fresh.tuned_rate
    flow = guides.spline_flow(like(np.float32), **SMALL)
    assert flow.matched(mean, covariance).suggested_rate == flow.suggested_rate
