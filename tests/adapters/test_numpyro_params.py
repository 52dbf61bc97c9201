"""``numpyro.param`` sites of a model are trained, whatever the objective."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import softcvi
from softcvi.adapters import from_numpyro

RNG = np.random.default_rng(0)
Y = 2.0 * RNG.normal(size=40) + RNG.normal(size=40)


def model(y):
    scale = numpyro.param("scale", 0.5, constraint=dist.constraints.positive)
    with numpyro.plate("rows", len(y)):
        z = numpyro.sample("z", dist.Normal(0, scale))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)


@pytest.mark.parametrize("objective", [None, softcvi.ELBO()], ids=["default", "elbo"])
def test_the_prior_scale_is_that_of_maximum_likelihood(objective):
    target = from_numpyro(model, Y, decentre=False)
    np.testing.assert_allclose(target.model_parameters()["scale"], 0.5, rtol=1e-5)
    result = softcvi.fit(
        jax.random.key(0),
        target,
        softcvi.guides.mean_field(target),
        objective=objective,
        steps=3000,
        learning_rate=0.02,
        start=None,
        progress=False,
    )
    trained = result.posterior.target.model_parameters()["scale"]
    best = np.sqrt(np.mean(Y**2) - 1.0)
    np.testing.assert_allclose(trained, best, atol=0.15)
    assert f"scale: {float(jnp.asarray(trained)):.4g}" in result.summary()
