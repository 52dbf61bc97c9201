"""Sparse regression under the horseshoe."""

import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import LongNUTS


def _horseshoe(covariates, y=None):
    tau = numpyro.sample("tau", dist.HalfCauchy(0.2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("covariate", covariates.shape[1]):
        local = numpyro.sample("local", dist.HalfCauchy(1.0))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    beta = numpyro.deterministic("beta", z * local * tau)
    numpyro.sample("y", dist.Normal(covariates @ beta, sigma), obs=y)


def _horseshoe_data():
    rng = np.random.default_rng(301)
    covariates = rng.normal(size=(60, 15))
    beta = np.zeros(15)
    beta[:4] = [3.0, -2.0, 1.0, 0.5]
    return covariates, covariates @ beta + rng.normal(size=60)


MODELS = (
    ZooModel(
        name="horseshoe",
        model=_horseshoe,
        kind="latent variables",
        split="report",
        description="Horseshoe regression, 15 covariates of which 4 matter: products "
        "of three parameters, half-Cauchy scales (scored as logarithms because "
        "their variance does not exist).",
        args=_horseshoe_data(),
        reference=LongNUTS(accept=0.99, warmup=1_500, samples=2_000),
        scales={"tau": "log", "local": "log"},
    ),
)
