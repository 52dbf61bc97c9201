"""Fits with known answers: the toy normal, linear regression, two modes, a model."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

import softcvi
from softcvi import ELBO, SNISForwardKL, SoftCVI, TemperedProposal, guides

TOY_MEAN, TOY_SD = 0.8, np.sqrt(0.8)
OBJECTIVES = {
    "SoftCVI 0.75": SoftCVI(negative=TemperedProposal(0.75)),
    "SoftCVI 1": SoftCVI(negative=TemperedProposal(1.0)),
    "ELBO": ELBO(),
    "SNIS-fKL": SNISForwardKL(),
}


def toy(theta):
    """theta ~ N(0, 4), x ~ N(theta, 1) observed at one, in each dimension."""
    return -0.5 * jnp.sum(theta**2) / 4 - 0.5 * jnp.sum((1.0 - theta) ** 2)


@pytest.mark.parametrize("dim", [1, 50])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_toy_normal(name, dim):
    target = softcvi.DensityTarget(toy, np.zeros(dim, np.float32))
    results = softcvi.fit_many(
        jax.random.split(jax.random.key(0), 8),
        target,
        guides.mean_field(target),
        objective=OBJECTIVES[name],
        steps=4000,
        start=None,
        progress=False,
    )
    fitted = [r.posterior.guide.distribution for r in results]
    means = np.array([np.asarray(d.loc) for d in fitted]).ravel()
    sds = np.array([np.asarray(d.scale.fn(*d.scale.args)) for d in fitted]).ravel()
    # Each run and dimension is an independent estimate of the same two numbers.
    for estimates, truth in ((means, TOY_MEAN), (sds, TOY_SD)):
        error = estimates.std(ddof=1) / np.sqrt(estimates.size)
        assert abs(estimates.mean() - truth) < 4 * error + 2e-3
        assert error < 0.02


class Regression(eqx.Module):
    """200 points, 50 covariates and a bias; unit priors and unit noise."""

    x: jax.Array
    y: jax.Array

    def __call__(self, theta):
        residual = self.y - self.x @ theta["beta"] - theta["bias"]
        prior = jnp.sum(theta["beta"] ** 2) + theta["bias"] ** 2
        return -0.5 * jnp.sum(residual**2) - 0.5 * prior


def regressions(n):
    """Data sets as in the paper, with the exact means and variances."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 200, 50))
    theta = rng.normal(size=(n, 51))
    design = np.concatenate([x, np.ones((n, 200, 1))], axis=2)
    y = np.einsum("nij,nj->ni", design, theta) + rng.normal(size=(n, 200))
    covariance = np.linalg.inv(np.swapaxes(design, 1, 2) @ design + np.eye(51))
    mean = np.einsum("nij,nkj,nk->ni", covariance, design, y)
    model = Regression(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    return model, mean, np.diagonal(covariance, axis1=1, axis2=2)


@pytest.mark.parametrize(("steps", "most"), [(10_000, 0.1), (50_000, 0.05)])
def test_linear_regression_with_the_default_recipe(steps, most):
    model, means, variances = regressions(5)
    like = {"beta": np.zeros(50, np.float32), "bias": np.zeros((), np.float32)}
    target = softcvi.DensityTarget(model, like)
    results = softcvi.fit_many(
        jax.random.split(jax.random.key(1), 5),
        target,
        guides.mean_field(target),
        steps=steps,
        batched_target=True,
        progress=False,
    )
    gaps = []
    for result, mean, variance in zip(results, means, variances, strict=True):
        # The raveled particle is sorted by name: beta, then bias. The optimum has the
        # posterior's own marginals.
        normal = paramax.unwrap(result.posterior.guide.distribution)
        loc, scale = np.asarray(normal.loc, float), np.asarray(normal.scale, float)
        square = (variance + (mean - loc) ** 2) / scale**2
        gaps.append(0.5 * np.sum(square - 1 - np.log(variance / scale**2)))
    assert np.min(gaps) >= 0
    assert np.median(gaps) < most


def test_a_placed_normal_moves_in_units_of_the_posterior():
    """A start that is off is mended whatever the parameters' scales."""
    sd = np.array([1e-2, 1.0, 1e3], np.float32)
    shape = np.float32(2.0)  # log of a gamma: skewed, so that no Laplace is exact

    def log_density(x):
        return jnp.sum(shape * x["x"] / sd - jnp.exp(x["x"] / sd))

    target = softcvi.DensityTarget(log_density, {"x": np.zeros(3, np.float32)})
    for family in (guides.mean_field, guides.low_rank):
        result = softcvi.fit(
            jax.random.key(0), target, family(target), steps=4000, progress=False
        )
        draws = result.posterior.sample(jax.random.key(1), 20_000)["x"] / sd
        # Digamma and trigamma at two, as near as alpha below one brings a normal.
        np.testing.assert_allclose(draws.mean(axis=0), 0.4228, atol=0.1)
        np.testing.assert_allclose(draws.std(axis=0), np.sqrt(0.6449), rtol=0.1)
        assert np.ptp(draws.mean(axis=0)) < 0.03


def two_modes(x):
    parts = jnp.stack([-0.5 * jnp.sum((x + 3) ** 2), -0.5 * jnp.sum((x - 3) ** 2)])
    return jax.nn.logsumexp(parts + jnp.log(jnp.array([0.8, 0.2])))


def test_a_mixture_recovers_the_weights_of_two_modes():
    target = softcvi.DensityTarget(two_modes, np.zeros(2, np.float32))
    parts = [
        guides.VectorGuide(
            guides.DiagonalNormal(jnp.full(2, at), jnp.full(2, 1.5)), target.structure
        )
        for at in (-2.0, 2.0)
    ]
    result = softcvi.fit(
        jax.random.key(0), target, guides.mixture(parts), steps=4000, progress=False
    )
    np.testing.assert_allclose(result.posterior.guide.weights, [0.8, 0.2], atol=0.02)
    locs = [np.asarray(p.distribution.loc) for p in result.posterior.guide.components]
    np.testing.assert_allclose(locs, [[-3, -3], [3, 3]], atol=0.1)


class LatentMean(eqx.Module):
    """z_i ~ N(centre, 1), x_i ~ N(z_i, 1): the best centre is the mean of the data."""

    centre: jax.Array
    x: jax.Array = eqx.field(static=False)

    def __call__(self, z):
        data = jax.lax.stop_gradient(self.x)
        return -0.5 * jnp.sum((z - self.centre) ** 2) - 0.5 * jnp.sum((data - z) ** 2)


@pytest.mark.parametrize("objective", [SoftCVI(), ELBO()], ids=["SoftCVI", "ELBO"])
def test_the_model_term_trains_a_model_to_its_maximum_likelihood(objective):
    data = np.array([2.0, 3.5, 0.5, 4.0], np.float32)
    model = LatentMean(jnp.zeros(()), jnp.asarray(data))
    target = softcvi.DensityTarget(model, np.zeros(4, np.float32))
    result = softcvi.fit(
        jax.random.key(0),
        target,
        guides.mean_field(target),
        objective=softcvi.WithModelTerm(objective),
        steps=6000,
        start=None,
        progress=False,
    )
    fitted = result.posterior.target.log_prob
    np.testing.assert_allclose(fitted.x, data)
    assert float(fitted.centre) == pytest.approx(2.5, abs=0.03)
    normal = result.posterior.guide.distribution
    np.testing.assert_allclose(normal.loc, (data + 2.5) / 2, atol=0.05)
    scale = normal.scale.fn(*normal.scale.args)
    np.testing.assert_allclose(scale, np.sqrt(0.5), rtol=0.05)


def test_without_the_model_term_the_model_stays():
    model = LatentMean(jnp.ones(()), jnp.zeros(4))
    target = softcvi.DensityTarget(model, np.zeros(4, np.float32))
    result = softcvi.fit(
        jax.random.key(0),
        target,
        guides.mean_field(target),
        steps=20,
        start=None,
        progress=False,
    )
    assert float(result.posterior.target.log_prob.centre) == 1.0
