import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_pymc
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts

pm = pytest.importorskip("pymc")


@pytest.fixture(scope="module")
def model():
    names = ["Choate", "Deerfield", "Andover", "Exeter"]
    names += ["Hotchkiss", "Lawrenceville", "St. Paul's", "Mt. Hermon"]
    with pm.Model(coords={"school": names}) as model:
        effects = pm.Data("effects", EFFECTS, dims="school")
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        base = pm.Normal("theta_base", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * base, dims="school")
        pm.Normal("obs", theta, ERRORS, observed=effects, dims="school")
    return model


@pytest.fixture(scope="module")
def target(model):
    return from_pymc(model)


def test_the_switches_of_jax_stay_where_they_were(target):
    assert not jax.config.jax_enable_x64
    assert "device_count=100" not in os.environ.get("XLA_FLAGS", "")
    assert jnp.zeros(()).dtype == jnp.float32


def test_log_density_is_that_of_the_numpyro_model(target, schools_target):
    keys = jax.random.split(jax.random.key(0), 16)
    points = jax.vmap(schools_target.initial_particle)(keys)
    ours = jax.jit(jax.vmap(target.log_density))(points)
    theirs = jax.jit(jax.vmap(schools_target.log_density))(points)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def test_names_values_data_and_dims(target):
    u = {"mu": 1.0, "tau": np.log(2.0), "theta_base": jnp.ones(8)}
    x, log_det = target.space.to_model_and_log_det(u)
    np.testing.assert_allclose(x["tau"], 2.0, rtol=1e-5)
    np.testing.assert_allclose(log_det, np.log(2.0), rtol=1e-5)
    again, inverse = target.space.from_model_and_log_det(x)
    np.testing.assert_allclose(again["tau"], np.log(2.0), rtol=1e-5)
    np.testing.assert_allclose(log_det + inverse, 0.0, atol=1e-6)
    np.testing.assert_allclose(target.describe(x)["theta"], 3.0, rtol=1e-5)
    np.testing.assert_allclose(target.observed_data()["obs"], EFFECTS)
    assert target.dims()["theta"] == ["school"]


@pytest.mark.slow
def test_eight_schools_with_the_default_guide(target):
    result = softcvi.fit(jax.random.key(0), target, steps=4000, progress=False)
    assert_like_nuts(result.posterior.resample(jax.random.key(1), 20_000))
    pytest.importorskip("arviz_base")
    tree = result.posterior.to_arviz(n=100)
    assert tree["posterior"]["theta"].sel(school="Exeter").shape == (1, 100)
    assert tree["log_likelihood"]["obs"].shape == (1, 100, 8)


def test_a_data_container_is_read_at_the_call():
    with pm.Model() as small:
        data = pm.Data("data", np.zeros(3))
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=data)
    before = from_pymc(small)
    with small:
        pm.set_data({"data": np.full(3, 2.0)})
    after = from_pymc(small)
    zero = {"mu": jnp.zeros(())}
    difference = before.log_density(zero) - after.log_density(zero)
    np.testing.assert_allclose(difference, 3 * 2.0, rtol=1e-5)


def test_another_object_is_refused():
    with pytest.raises(TypeError, match="expected a pymc"):
        from_pymc(lambda: None)
