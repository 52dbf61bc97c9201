"""NumPyro targets simulate data, and take other ones."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from softcvi.adapters import from_numpyro

Y = jnp.array([0.3, -1.0, 0.5, 2.0])
NEW = jnp.array([1.0, 2.0, -0.5, 0.1])


def plain(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def logged(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with numpyro.plate("rows", 4):
        numpyro.sample("y", dist.Normal(mu, 1), obs=jnp.log(jnp.exp(y)))


def closed_over(y):
    return lambda: plain(y)


@pytest.mark.parametrize("model", [plain, logged])
def test_other_data_give_their_posterior(model):
    target, wanted = from_numpyro(model, Y), from_numpyro(model, NEW)
    found, particle = target.with_observed({"y": NEW}), {"mu": jnp.asarray(0.4)}
    assert jnp.allclose(found.log_density(particle), wanted.log_density(particle))
    assert not jnp.allclose(found.log_density(particle), target.log_density(particle))
    np.testing.assert_array_equal(found.observed_data()["y"], NEW)


def test_data_that_are_no_argument_can_be_replaced():
    target = from_numpyro(closed_over(Y)).with_observed({"y": NEW})
    wanted, particle = from_numpyro(plain, NEW), {"mu": jnp.asarray(0.4)}
    assert jnp.allclose(target.log_density(particle), wanted.log_density(particle))


def test_simulated_data_follow_the_parameters():
    target = from_numpyro(plain, Y)
    keys = jax.random.split(jax.random.key(0), 4000)
    parameters, observed = jax.vmap(target.simulate)(keys)
    assert set(parameters) == {"mu"}
    residuals = observed["y"] - parameters["mu"][:, None]
    # Means and variances of 16,000 unit normals, and of 4,000.
    assert abs(float(residuals.mean())) < 5 / np.sqrt(16_000)
    assert abs(float(residuals.var()) - 1) < 5 * np.sqrt(2 / 16_000)
    assert abs(float(parameters["mu"].var()) - 1) < 5 * np.sqrt(2 / 4_000)


def test_lagged_data_stay_as_they_are():
    def walk(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.sample("steps", dist.Normal(a * y[:-1], 1), obs=y[1:])

    target, steps = from_numpyro(walk, Y), NEW[1:]
    found = target.with_observed({"steps": steps}).log_density({"a": jnp.asarray(0.7)})
    normal = jax.scipy.stats.norm.logpdf
    wanted = normal(0.7) + jnp.sum(normal(steps, 0.7 * Y[:-1], 1.0))
    assert jnp.allclose(found, wanted)


def test_what_cannot_be_simulated_is_refused():
    def improper(y):
        mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    def factor(y):
        plain(y)
        numpyro.factor("extra", -1.0)

    def batches(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 4, subsample_size=2) as rows:
            numpyro.sample("y", dist.Normal(mu, 1), obs=y[rows])

    key = jax.random.key(0)
    with pytest.raises(ValueError, match="prior of \\['mu'\\] is improper"):
        from_numpyro(improper, Y).simulate(key)
    with pytest.raises(ValueError, match="a factor"):
        from_numpyro(factor, Y).simulate(key)
    with pytest.warns(UserWarning, match="subsamples the data"):
        target = from_numpyro(batches, Y)
    with pytest.raises(ValueError, match="leave subsample_size out"):
        target.with_observed({"y": NEW})
    with pytest.raises(ValueError, match="simulate: its data have shapes"):
        from_numpyro(plain, Y).with_observed({"y": NEW[:2]})
