"""Regressions as people meet them: covariates in raw units, outliers, counts."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import WhitenedNUTS


def _weight(height, age, income, weight=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 100.0))
    b_height = numpyro.sample("b_height", dist.Normal(0.0, 10.0))
    b_age = numpyro.sample("b_age", dist.Normal(0.0, 10.0))
    b_income = numpyro.sample("b_income", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(50.0))
    mean = intercept + b_height * height + b_age * age + b_income * income
    numpyro.sample("weight", dist.Normal(mean, sigma), obs=weight)


def _weight_data():
    rng = np.random.default_rng(101)
    height = rng.normal(170.0, 9.0, 150)
    age = rng.uniform(20.0, 65.0, 150)
    income = rng.lognormal(10.4, 0.6, 150)
    mean = -70.0 + 0.8 * height + 0.15 * age - 5e-5 * income
    return height, age, income, rng.normal(mean, 9.0)


def _wells(covariates, switch=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
    with numpyro.plate("covariate", covariates.shape[1]):
        beta = numpyro.sample("beta", dist.Normal(0.0, 2.5))
    numpyro.sample(
        "switch", dist.Bernoulli(logits=intercept + covariates @ beta), obs=switch
    )


def _wells_data():
    rng = np.random.default_rng(102)
    distance = rng.exponential(48.0, 300)  # metres
    arsenic = 0.5 + rng.gamma(1.2, 1.0, 300)
    schooling = rng.integers(0, 17, 300).astype(float)
    income = rng.lognormal(7.5, 0.7, 300)
    year = rng.integers(1960, 2000, 300).astype(float)
    covariates = np.stack([distance, arsenic, schooling, income, year], axis=1)
    logits = 39.6 + covariates @ np.array([-0.012, 0.55, 0.05, 2e-4, -0.02])
    return covariates, rng.binomial(1, 1.0 / (1.0 + np.exp(-logits)))


def _pests(before, treated, senior, exposure, count=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
    b_before = numpyro.sample("b_before", dist.Normal(0.0, 2.5))
    b_treated = numpyro.sample("b_treated", dist.Normal(0.0, 2.5))
    b_senior = numpyro.sample("b_senior", dist.Normal(0.0, 2.5))
    inverse_dispersion = numpyro.sample("inverse_dispersion", dist.Exponential(1.0))
    log_rate = intercept + b_before * before + b_treated * treated + b_senior * senior
    logits = jnp.log(exposure) + log_rate - jnp.log(inverse_dispersion)
    numpyro.sample(
        "count", dist.NegativeBinomialLogits(inverse_dispersion, logits), obs=count
    )


def _pests_data():
    rng = np.random.default_rng(103)
    before = np.round(rng.gamma(0.5, 80.0, 180)) / 100.0
    treated = rng.binomial(1, 0.6, 180).astype(float)
    senior = rng.binomial(1, 0.3, 180).astype(float)
    exposure = rng.uniform(0.5, 2.0, 180)
    rate = exposure * np.exp(2.6 + 0.7 * before - 0.6 * treated - 0.3 * senior)
    count = rng.negative_binomial(0.5, 0.5 / (0.5 + rate))
    return before, treated, senior, exposure, count.astype(float)


def _robust(covariates, y=None):
    intercept = numpyro.sample("intercept", dist.Cauchy(0.0, 10.0))
    with numpyro.plate("covariate", covariates.shape[1]):
        beta = numpyro.sample("beta", dist.Cauchy(0.0, 2.5))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5.0))
    nu = numpyro.sample("nu", dist.Gamma(2.0, 0.1))
    numpyro.sample("y", dist.StudentT(nu, intercept + covariates @ beta, sigma), obs=y)


def _robust_data():
    rng = np.random.default_rng(104)
    shared = rng.normal(size=(80, 1))
    covariates = 0.9 * shared + 0.45 * rng.normal(size=(80, 6))
    beta = np.array([1.0, 0.0, -2.0, 0.5, 0.0, 3.0])
    return covariates, 4.0 + covariates @ beta + 0.7 * rng.standard_t(2.0, 80)


MODELS = (
    ZooModel(
        name="linear_raw_units",
        model=_weight,
        kind="regression",
        split="development",
        description="Linear regression on centimetres, years and currency: posterior "
        "standard deviations differ by five orders of magnitude, correlation 0.99.",
        args=_weight_data(),
        reference=WhitenedNUTS(
            {
                "intercept": -70.0,
                "b_height": 0.8,
                "b_age": 0.15,
                "b_income": -5e-5,
                "sigma": 9.0,
            }
        ),
    ),
    ZooModel(
        name="logistic_raw_units",
        model=_wells,
        kind="regression",
        split="report",
        description="Logistic regression on raw units with a calendar year, so that "
        "intercept and slope lie on a ridge.",
        args=_wells_data(),
        reference=WhitenedNUTS({"intercept": 0.0, "beta": np.zeros(5)}),
    ),
    ZooModel(
        name="negative_binomial",
        model=_pests,
        kind="counts",
        split="report",
        description="Overdispersed counts with an exposure and a skewed covariate.",
        args=_pests_data(),
    ),
    ZooModel(
        name="robust_regression",
        model=_robust,
        kind="heavy tails",
        split="report",
        description="Student-t errors with unknown degrees of freedom, correlated "
        "covariates and Cauchy priors.",
        args=_robust_data(),
    ),
)
