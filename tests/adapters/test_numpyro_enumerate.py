"""Sites marked for enumeration: summed out, then drawn given the other latents."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.stats import beta, norm
from numpyro.contrib.control_flow import scan

from softcvi.adapters import from_numpyro, numpyro_guide, to_arviz
from softcvi.posterior import Posterior

pytest.importorskip("funsor")
y = jnp.array([-2.1, -1.7, 0.1, 1.6, 2.4])
x = {"mu": jnp.array([-1.5, 1.5]), "w": jnp.array(0.4)}


def mixture(y):
    mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
    w = numpyro.sample("w", dist.Beta(2, 2))
    with numpyro.plate("points", len(y)):
        z = numpyro.sample("z", dist.Bernoulli(w), infer={"enumerate": "parallel"})
        mean = numpyro.deterministic("mean", mu[z])
        numpyro.sample("y", dist.Normal(mean, 1.2), obs=y)


def components(x):
    return jnp.log(jnp.array([1 - x["w"], x["w"]])) + norm.logpdf(
        y[:, None], x["mu"], 1.2
    )


@pytest.fixture(scope="module")
def target():
    return from_numpyro(mixture, y)


def test_the_density_is_that_of_the_sum(target):
    assert target.structure.names == ("mu", "w")
    assert target.has_gradient
    u, log_det = target.space.from_model_and_log_det(x)
    prior = norm.logpdf(x["mu"], 0, 3).sum() + beta.logpdf(x["w"], 2, 2)
    exact = prior + jax.nn.logsumexp(components(x), axis=1).sum() - log_det
    np.testing.assert_allclose(target.log_density(u), exact, rtol=1e-5)


def test_draws_are_those_given_the_other_latents(target):
    # Draws of a guide so narrow that the others are nearly fixed.
    n = 4_000
    noise = 1e-4 * jax.random.normal(jax.random.key(0), (n, 3))
    batch = {"mu": x["mu"] + noise[:, :2], "w": x["w"] + noise[:, 2]}
    draws = jax.jit(jax.vmap(target.describe))(batch)
    exact = jax.nn.softmax(components(x), axis=1)[:, 1]
    assert draws["z"].shape == (n, 5)
    error = jnp.abs(draws["z"].mean(0) - exact) / jnp.sqrt(exact * (1 - exact) / n)
    assert jnp.max(error) < 4
    picked = jnp.take_along_axis(draws["mu"], draws["z"], axis=1)
    np.testing.assert_array_equal(draws["mean"], picked)
    # The same draw has the same sites; given ones are kept.
    again = jax.jit(jax.vmap(target.describe))(batch)
    np.testing.assert_array_equal(again["z"], draws["z"])
    other = jax.vmap(target.describe)({**batch, "z": 1 - draws["z"]})
    np.testing.assert_array_equal(other["z"], 1 - draws["z"])


def test_they_reach_arviz_and_predictions(target):
    def guide(y):
        loc = numpyro.param("loc", jnp.zeros(2))
        numpyro.sample("mu", dist.Normal(loc, 0.1).to_event(1))
        numpyro.sample("w", dist.Beta(2.0, 3.0))

    tree = to_arviz(Posterior(numpyro_guide(guide, target), target), n=20)
    assert tree["posterior"]["z"].dims == ("chain", "draw", "points")
    assert tree["posterior_predictive"]["y"].shape == (1, 20, 5)
    assert "log_likelihood" not in tree.children


def test_in_a_loop_they_are_summed_alone():
    rows = jnp.array([[0.7, 0.3], [0.2, 0.8]])

    def hidden_markov(y):
        mu = numpyro.sample("mu", dist.Normal(jnp.array([-1.0, 1.0]), 1).to_event(1))
        numpyro.deterministic("gap", mu[1] - mu[0])

        def step(z, y_t):
            z = numpyro.sample(
                "z", dist.Categorical(rows[z]), infer={"enumerate": "parallel"}
            )
            numpyro.deterministic("state", 2 * z)
            numpyro.sample("y", dist.Normal(mu[z], 0.5), obs=y_t)
            return z, None

        scan(step, 0, y)

    target = from_numpyro(hidden_markov, y)
    mu = jnp.array([-1.2, 0.8])
    log_alpha = jnp.log(rows[0]) + norm.logpdf(y[0], mu, 0.5)
    for y_t in y[1:]:
        moved = jax.nn.logsumexp(log_alpha[:, None] + jnp.log(rows), axis=0)
        log_alpha = moved + norm.logpdf(y_t, mu, 0.5)
    exact = jax.nn.logsumexp(log_alpha) + norm.logpdf(mu, jnp.array([-1, 1]), 1).sum()
    np.testing.assert_allclose(target.log_density({"mu": mu}), exact, rtol=1e-5)
    assert set(target.describe({"mu": mu})) == {"mu", "gap"}


def test_marked_sites_alone_are_fitted_like_other_discrete_ones():
    def memberships(y):
        with numpyro.plate("points", len(y)):
            z = numpyro.sample(
                "z", dist.Bernoulli(0.4), infer={"enumerate": "parallel"}
            )
            numpyro.sample("y", dist.Normal(3.0 * z - 1.5, 1.2), obs=y)

    assert from_numpyro(memberships, y).discrete_sizes == {"z": 2}
