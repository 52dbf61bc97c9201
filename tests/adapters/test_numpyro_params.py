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


def line(x, y):
    intercept, slope = numpyro.param("a", 0.0), numpyro.param("b", 0.0)
    sd = numpyro.sample("sd", dist.HalfNormal(1.0))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("y", dist.Normal(intercept + slope * x, sd), obs=y)


def by_fit(key, target):
    return softcvi.fit(key, target, progress=False)


def by_first_rung(key, target):
    """So few steps that the parameters are still on their way after the first fit."""
    rungs = (softcvi.ladder.Simple(),)
    return softcvi.fit_until(key, target, steps=2000, rungs=rungs, progress=False)


@pytest.mark.parametrize("fit", [by_fit, by_first_rung])
def test_an_answer_with_parameters_that_moved_far_is_right_and_trusted(fit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = 3.0 - 2.0 * x + 0.7 * rng.normal(size=60)
    result = fit(jax.random.key(0), from_numpyro(line, x, y))
    assert result.verdict.trusted
    trained = result.posterior.target.model_parameters()
    exact = np.polyfit(x, y, 1)
    np.testing.assert_allclose([trained["b"], trained["a"]], exact, rtol=1e-2)
    # Four standard errors of 4000 draws, whose sd is about a tenth of the mean.
    residuals = y - np.polyval(exact, x)
    draws = result.sample(jax.random.key(1), 4000)["sd"]
    np.testing.assert_allclose(draws.mean(), residuals.std(), rtol=0.03)
