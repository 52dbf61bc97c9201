"""Gaussian processes with unknown length scale."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import LongNUTS


def _kernel(x, length, amplitude, jitter):
    distance = (x[:, None] - x[None, :]) / length
    return amplitude**2 * jnp.exp(-0.5 * distance**2) + jitter * jnp.eye(len(x))


def _gp_regression(x, y=None):
    length = numpyro.sample("length", dist.InverseGamma(5.0, 5.0))
    amplitude = numpyro.sample("amplitude", dist.HalfNormal(2.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    covariance = _kernel(x, length, amplitude, noise**2 + 1e-6)
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def _gp_regression_data():
    rng = np.random.default_rng(601)
    x = np.sort(rng.uniform(0.0, 6.0, 30))
    return x, np.sin(1.5 * x) + 0.3 * x + rng.normal(0.0, 0.4, 30)


def _gp_poisson(x, count=None):
    length = numpyro.sample("length", dist.InverseGamma(5.0, 5.0))
    amplitude = numpyro.sample("amplitude", dist.HalfNormal(1.0))
    level = numpyro.sample("level", dist.Normal(0.0, 3.0))
    with numpyro.plate("point", len(x)):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    factor = jnp.linalg.cholesky(_kernel(x, length, amplitude, 1e-4))
    log_rate = numpyro.deterministic("log_rate", level + factor @ z)
    numpyro.sample("count", dist.Poisson(jnp.exp(log_rate)), obs=count)


def _gp_poisson_data():
    rng = np.random.default_rng(602)
    x = np.linspace(0.0, 6.0, 20)
    return x, rng.poisson(np.exp(1.2 + np.sin(1.3 * x))).astype(float)


MODELS = (
    ZooModel(
        name="gp_regression",
        model=_gp_regression,
        kind="Gaussian process",
        split="development",
        description="Length scale, amplitude and noise of a Gaussian process, the "
        "function integrated out.",
        args=_gp_regression_data(),
    ),
    ZooModel(
        name="gp_poisson",
        model=_gp_poisson,
        kind="Gaussian process",
        split="report",
        description="Counts with a latent Gaussian process at 20 points.",
        args=_gp_poisson_data(),
        reference=LongNUTS(accept=0.95),
    ),
)
