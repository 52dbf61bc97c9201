"""Densities that fail in places, data by the batch, and models without gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import ELBO, guides

QUICK = {"start": None, "progress": False}


def half_broken(x):
    """A normal whose code gives NaN on one side and plus infinity on a strip."""
    value = -0.5 * jnp.sum((x - 1.0) ** 2)
    value = jnp.where(x[0] < -0.5, jnp.nan, value)
    return jnp.where(jnp.abs(x[1] - 1.0) < 0.02, jnp.inf, value)


def test_bad_densities_are_counted_and_do_not_stop_a_fit():
    target = softcvi.DensityTarget(half_broken, np.zeros(2, np.float32))
    guide = guides.mean_field(target)
    result = softcvi.fit(jax.random.key(0), target, guide, steps=1500, **QUICK)
    assert result.status == "finished"
    assert result.num_bad_densities > 100
    assert result.num_skipped_steps == 0
    assert "bad log densities" in result.summary()
    normal = result.posterior.guide.distribution
    np.testing.assert_allclose(normal.loc, 1.0, atol=0.25)


def test_degenerate_labels_are_named_with_a_remedy():
    def narrow(x):
        return -0.5 * jnp.sum((x - 3.0) ** 2) / 1e-6

    target = softcvi.DensityTarget(narrow, np.zeros(20, np.float32))
    guide = guides.mean_field(target)
    result = softcvi.fit(jax.random.key(0), target, guide, steps=50, **QUICK)
    assert "label ESS stayed at 1.0" in result.message
    assert "richer guide" in result.message
    assert result.verdict.level == "not trusted"


def encode(condition):
    return condition


def decode(parameters):
    return guides.DiagonalNormal(parameters[:1], jax.nn.softplus(parameters[1:]))


@pytest.fixture(scope="module")
def amortised():
    """z ~ N(0, 1), x ~ N(z, 1): each datum's posterior is N(x / 2, 1 / 2)."""
    data = np.random.default_rng(0).normal(scale=np.sqrt(2), size=(200, 1))
    target = softcvi.targets.AmortisedTarget(
        lambda z, x: -0.5 * jnp.sum(z**2) - 0.5 * jnp.sum((x - z) ** 2),
        np.zeros(1, np.float32),
        data=jnp.asarray(data, jnp.float32),
        batch_size=4,
    )
    encoder = eqx.nn.Linear(1, 2, key=jax.random.key(0))
    site = guides.NetworkDistribution(encoder, decode, shape=(1,), cond_shape=(1,))
    guide = guides.VectorGuide(site, target.structure)
    return softcvi.fit(jax.random.key(0), target, guide, steps=1500, **QUICK)


def test_an_amortised_guide_learns_every_posterior(amortised):
    assert amortised.status == "finished"
    for x in (-2.0, 1.0):
        draws = amortised.posterior.sample(
            jax.random.key(1), 4000, condition=jnp.array([x])
        )["value"]
        error = np.sqrt(0.5 / 4000)
        assert abs(float(jnp.mean(draws)) - x / 2) < 4 * error + 0.05
        assert float(jnp.std(draws)) == pytest.approx(np.sqrt(0.5), rel=0.1)


def test_an_amortised_fit_has_a_summary(amortised):
    """One posterior per datum: there is nothing to weigh or to list."""
    assert not amortised.has_weights
    assert "condition=datum" in amortised.summary()
    assert not amortised.verdict.trusted


def test_mini_batches_of_a_global_latent_warn_and_suit_the_elbo():
    data = np.random.default_rng(1).normal(2.0, 1.0, size=20).astype(np.float32)
    with pytest.warns(UserWarning, match=r"MiniBatchTarget subsamples.*softcvi.ELBO"):
        target = softcvi.targets.MiniBatchTarget(
            lambda t: -0.5 * jnp.sum(t**2),
            lambda t, x: -0.5 * jnp.sum((x - t) ** 2),
            np.zeros((), np.float32),
            data=jnp.asarray(data),
            batch_size=10,
        )
    guide = guides.mean_field(target)
    result = softcvi.fit(
        jax.random.key(0), target, guide, objective=ELBO(), steps=4000, **QUICK
    )
    normal = result.posterior.guide.distribution
    assert float(normal.loc[0]) == pytest.approx(data.sum() / 21, abs=0.05)
    scale = float(normal.scale.fn(*normal.scale.args)[0])
    assert scale == pytest.approx(1 / np.sqrt(21), rel=0.1)
    # Label ESS is low, since batches differ, and says nothing about the ELBO.
    assert "ELBO" not in " ".join(result.verdict.advice)
    assert not any(f.kind is Kind.LABEL_ESS for f in result.verdict.findings)


def test_batches_must_fit_the_data():
    def target(size, data):
        return softcvi.targets.AmortisedTarget(
            lambda z, x: 0.0, np.zeros(1), data=data, batch_size=size
        )

    with pytest.raises(ValueError, match="batch_size: must lie between 1 and the 5"):
        target(6, jnp.zeros((5, 1)))
    with pytest.raises(ValueError, match="data: all arrays need one leading axis"):
        target(1, {"a": jnp.zeros(5), "b": jnp.zeros(4)})


def numpy_density(x):
    return np.asarray(-0.5 * np.sum((np.asarray(x) - 1.0) ** 2, axis=-1), np.float32)


def behind_a_callback(x):
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(numpy_density, shape, x, vmap_method="broadcast_all")


def test_a_density_behind_a_callback_needs_no_gradient():
    target = softcvi.DensityTarget(behind_a_callback, np.zeros(2, np.float32))
    guide = guides.mean_field(target)
    result = softcvi.fit(jax.random.key(0), target, guide, steps=1000, **QUICK)
    np.testing.assert_allclose(result.posterior.guide.distribution.loc, 1.0, atol=0.2)


def test_a_discrete_site_learns_its_probabilities():
    """Three states with weights 1 : 2 : 7, which the ELBO could not reach."""

    def log_prob(x):
        return jnp.log(jnp.array([0.1, 0.2, 0.7]))[x["k"]]

    target = softcvi.DensityTarget(log_prob, {"k": np.zeros((), np.int32)})
    guide = guides.SiteGuide({"k": guides.Categorical(jnp.zeros(3))})
    result = softcvi.fit(jax.random.key(0), target, guide, steps=1500, **QUICK)
    logits = np.asarray(result.posterior.guide.sites["k"].logits, float)
    shares = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7], atol=0.02)
