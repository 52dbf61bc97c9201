"""Non-centred coordinates: found in the model, undone in draws, densities and files."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree

import softcvi
from softcvi.adapters import from_numpyro
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts


def centred(errors, effects=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(errors)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, errors), obs=effects)


def every_family():
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    numpyro.sample("normal", dist.Normal(1.0, scale).expand([2]).to_event(1))
    numpyro.sample("log_normal", dist.LogNormal(0.5, scale))
    numpyro.sample("half_cauchy", dist.HalfCauchy(scale))
    numpyro.sample("laplace", dist.Laplace(1.0, scale))
    numpyro.sample("student", dist.StudentT(jnp.array([3.0, 5.0]), 0.0, scale))
    with numpyro.handlers.mask(mask=jnp.array([True, False])):
        numpyro.sample("masked", dist.Normal(jnp.zeros(2), scale))
    covariance = scale * jnp.array([[1.0, 0.3], [0.3, 2.0]])
    numpyro.sample("vector", dist.MultivariateNormal(jnp.ones(2), covariance))
    numpyro.sample("walk", dist.GaussianRandomWalk(scale * jnp.array([1.0, 2.0]), 4))
    numpyro.sample("gamma", dist.Gamma(2.0, 1.0 / scale))


@pytest.fixture(scope="module")
def target():
    return from_numpyro(centred, ERRORS, effects=EFFECTS)


def test_the_density_is_that_of_the_model_written_by_hand(target, schools_target):
    assert target.space.decentred == ("theta",)
    keys = jax.random.split(jax.random.key(0), 16)
    by_hand = jax.vmap(schools_target.initial_particle)(keys)
    same = {**by_hand, "theta": by_hand["theta_base"]}
    same.pop("theta_base")
    np.testing.assert_allclose(
        jax.jit(jax.vmap(target.log_density))(same),
        jax.jit(jax.vmap(schools_target.log_density))(by_hand),
        rtol=1e-4,
    )
    x = target.space.to_model({"mu": 1.0, "tau": jnp.log(2.0), "theta": jnp.ones(8)})
    np.testing.assert_allclose(x["theta"], 3.0, rtol=1e-6)


def test_maps_of_all_families_have_the_right_volume():
    with jax.enable_x64(True):
        target = from_numpyro(every_family)
        names = set(target.space.decentred)
        assert names == {
            "normal", "log_normal", "half_cauchy", "laplace", "student", "masked",
            "vector", "walk",
        }  # fmt: skip
        u = target.initial_particle(jax.random.key(1))
        x, log_det = target.space.to_model_and_log_det(u)
        flat, unravel = ravel_pytree(u)
        jacobian = jax.jacobian(
            lambda v: ravel_pytree(target.space.to_model(unravel(v)))[0]
        )(flat)
        np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-9)
        back, inverse = target.space.from_model_and_log_det(x)
        np.testing.assert_allclose(ravel_pytree(back)[0], flat, rtol=1e-9)
        np.testing.assert_allclose(inverse, -log_det, rtol=1e-9)
        of_model, _ = numpyro.infer.util.log_density(every_family, (), {}, x)
        np.testing.assert_allclose(target.log_density(u), of_model + log_det, rtol=1e-9)


def test_a_tiny_scale_leaves_the_standardised_prior_as_it_is(target):
    """Values that follow from it are all rounded to the mean there."""
    tiny = {"mu": jnp.ones(()), "tau": jnp.log(1e-9)}
    at_zero, at_one = (
        target.log_density({**tiny, "theta": jnp.full(8, z)}) for z in (0.0, 1.0)
    )
    np.testing.assert_allclose(at_one - at_zero, -0.5 * 8, rtol=1e-3)


def test_coordinates_follow_what_the_data_know(target, tmp_path):
    mean = {"mu": 4.0, "tau": 1.0, "theta": np.linspace(-1.0, 1.0, 8)}
    wide = {"mu": 1.0, "tau": 1.0, "theta": np.ones(8)}
    assert target.recentred(mean, wide) is None
    again = target.recentred(mean, {**wide, "theta": np.full(8, 0.6)})
    assert again.standardised is None
    # What was found is the origin of the new coordinates, as wide as the spread.
    here = again.space.to_model({**mean, "theta": np.zeros(8)})["theta"]
    np.testing.assert_allclose(here, 4 + np.e * mean["theta"], rtol=1e-5)
    aside = again.space.to_model({**mean, "theta": np.ones(8)})["theta"]
    np.testing.assert_allclose(aside - here, 0.6 * np.e, rtol=1e-5)
    # With a wide prior the location is what the data say.
    far = again.space.to_model({"mu": -90.0, "tau": 9.0, "theta": np.zeros(8)})
    centre = again.space.informed["theta"].centre
    np.testing.assert_allclose(far["theta"], centre, rtol=1e-4)
    posterior = softcvi.Posterior(softcvi.guides.mean_field(again), again)
    posterior.save(tmp_path / "fit.softcvi")
    stored = softcvi.load(tmp_path / "fit.softcvi", target=target)
    key = jax.random.key(0)
    np.testing.assert_allclose(
        stored.sample(key, 3)["theta"], posterior.sample(key, 3)["theta"], rtol=1e-6
    )
    x = {"mu": 1.0, "tau": 2.0, "theta": np.linspace(-3.0, 8.0, 8)}
    densities = []
    for each in (target, again):
        u, log_det = each.space.from_model_and_log_det(x)
        densities.append(each.log_density(u) + log_det)
    np.testing.assert_allclose(densities[0], densities[1], rtol=1e-5)


def test_a_fit_in_the_models_coordinates_is_saved_and_needs_the_model(target, tmp_path):
    guide = softcvi.guides.mean_field(target)
    posterior = softcvi.Posterior(guide, target)
    path = tmp_path / "fit.softcvi"
    posterior.save(path)
    again = softcvi.load(path, target=from_numpyro(centred, ERRORS, effects=EFFECTS))
    key = jax.random.key(0)
    np.testing.assert_array_equal(
        again.sample(key, 5)["theta"], posterior.sample(key, 5)["theta"]
    )
    with pytest.raises(ValueError, match="target: the posterior in"):
        softcvi.load(path)
    # A file says which coordinates it was fitted in, whatever the model prefers now.
    plain = from_numpyro(centred, ERRORS, effects=EFFECTS, decentre=False)
    softcvi.Posterior(guide, plain).save(path)
    back = softcvi.load(path, target=target)
    np.testing.assert_array_equal(
        back.sample(key, 5)["theta"],
        softcvi.Posterior(guide, plain).sample(key, 5)["theta"],
    )


@pytest.mark.slow
def test_eight_schools_centred_at_the_defaults(target):
    result = softcvi.fit(jax.random.key(0), target, progress=False)
    assert result.verdict.level != "not trusted"
    assert_like_nuts(result.sample(jax.random.key(1), 20_000))
