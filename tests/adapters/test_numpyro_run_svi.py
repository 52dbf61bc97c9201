"""NumPyro's guides with the start and the rates of ``fit``."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import autoguide

import softcvi
from softcvi.adapters import SoftCVILoss, from_numpyro, numpyro_guide
from softcvi.adapters.numpyro import svi

RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(6), 5)
Y = 400.0 + 3.0 * RNG.normal(size=6)[GROUP] + RNG.normal(size=30)


def hierarchy(y):
    centre = numpyro.sample("centre", dist.Normal(0, 1000))
    spread = numpyro.sample("spread", dist.HalfNormal(10))
    noise = numpyro.sample("noise", dist.HalfNormal(5))
    with numpyro.plate("group", 6):
        effect = numpyro.sample("effect", dist.Normal(centre, spread))
    numpyro.sample("y", dist.Normal(effect[GROUP], noise), obs=y)


MEAN = np.linspace(-1.0, 1.0, 9)
FACTOR = np.tril(RNG.normal(size=(9, 9))) * 0.2 + 0.5 * np.eye(9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_joint"),
    [
        ("AutoMultivariateNormal", True),
        ("AutoDiagonalNormal", False),
        ("AutoNormal", False),
        ("AutoLowRankMultivariateNormal", False),
    ],
)
def test_normal_autoguides_are_placed_by_their_parameters(name, is_joint):
    target = from_numpyro(hierarchy, Y, decentre=False)
    guide = numpyro_guide(getattr(autoguide, name)(hierarchy), target)
    assert guide.can_be_matched
    placed = guide.matched(MEAN, FACTOR @ FACTOR.T)
    draws = jax.jit(jax.vmap(lambda k: target.structure.ravel(placed.sample(k))))(
        jax.random.split(jax.random.key(0), 4000)
    )
    sds = np.sqrt(np.diag(FACTOR @ FACTOR.T))
    np.testing.assert_allclose((draws.mean(0) - MEAN) / sds, 0.0, atol=0.08)
    np.testing.assert_allclose(draws.std(0) / sds, 1.0, atol=0.08)
    if is_joint:
        covariance = np.cov(np.asarray(draws).T)
        np.testing.assert_allclose(
            covariance / np.outer(sds, sds),
            FACTOR @ FACTOR.T / np.outer(sds, sds),
            atol=0.08,
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AutoNormal", "AutoMultivariateNormal"])
def test_a_hierarchy_far_from_the_prior_is_right_in_one_call(name):
    guide = getattr(autoguide, name)(hierarchy)
    fitted = svi(jax.random.key(0), hierarchy, guide, Y, steps=3000)
    draws = guide.sample_posterior(
        jax.random.key(1), fitted.params, sample_shape=(4000,)
    )
    target = from_numpyro(hierarchy, Y)
    reference = softcvi.fit(jax.random.key(2), target, progress=False)
    exact = reference.sample(jax.random.key(3), 8000)
    for site in ("centre", "spread", "noise"):
        sd = np.std(exact[site])
        shift = (np.mean(draws[site]) - np.mean(exact[site])) / sd
        assert abs(shift) < 0.3, site
        assert 0.6 < np.std(draws[site]) / sd < 1.4, site
    assert np.all(np.isfinite(fitted.losses))


@pytest.mark.slow
def test_a_guide_written_by_hand_begins_at_the_posterior():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1000))
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    def guide(y):
        loc = numpyro.param("loc", 0.0)
        scale = numpyro.param("scale", 1.0, constraint=dist.constraints.positive)
        numpyro.sample("mu", dist.Normal(400.0 + loc, scale))

    fitted = svi(jax.random.key(0), model, guide, Y, steps=500)
    np.testing.assert_allclose(400 + fitted.params["loc"], Y.mean(), atol=0.1)
    np.testing.assert_allclose(fitted.params["scale"], 30**-0.5, rtol=0.2)
    assert fitted.verdict.trusted


@pytest.mark.parametrize(
    "options",
    [
        {"negative": softcvi.FlatNegative()},
        {"negative": softcvi.CustomNegative(lambda u: -0.5 * u["mu"] ** 2)},
        {"divergence": softcvi.JensenShannon()},
        {"temperature": 2.0, "label_smoothing": 0.01},
    ],
    ids=["flat", "custom", "divergence", "temperature"],
)
def test_the_loss_takes_the_parts_of_the_objective(options):
    import optax

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    guide = autoguide.AutoNormal(model)
    loss = SoftCVILoss(16, **options)
    run = numpyro.infer.SVI(model, guide, optax.adam(0.02), loss)
    data = jnp.array([1.0, 2.0, 3.0])
    params = run.run(jax.random.key(0), 800, data, progress_bar=False).params
    np.testing.assert_allclose(params["mu_auto_loc"], 2.0, atol=0.15)
    np.testing.assert_allclose(params["mu_auto_scale"], 3**-0.5, rtol=0.2)


def test_joint_autoguides_are_scored_in_the_order_of_their_model():
    target = from_numpyro(hierarchy, Y, decentre=False)
    auto = autoguide.AutoMultivariateNormal(hierarchy)
    guide = numpyro_guide(auto, target).matched(MEAN, FACTOR @ FACTOR.T)
    particle = guide.sample(jax.random.key(0))
    order = ("centre", "spread", "noise", "effect")
    vector = jnp.concatenate([jnp.ravel(particle[name]) for name in order])
    theirs = auto.get_posterior(guide.fitted_params()).log_prob(vector)
    np.testing.assert_allclose(guide.log_prob(particle), theirs, rtol=1e-4)
