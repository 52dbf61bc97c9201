"""Survival times, many of them censored."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.reparam import LocScaleReparam

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import LongNUTS, WhitenedNUTS


def _weibull(age, treated, days, died):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 10.0))
    b_age = numpyro.sample("b_age", dist.Normal(0.0, 1.0))
    b_treated = numpyro.sample("b_treated", dist.Normal(0.0, 2.0))
    shape = numpyro.sample("shape", dist.Gamma(2.0, 1.0))
    scale = jnp.exp(intercept + b_age * age + b_treated * treated)
    with numpyro.handlers.mask(mask=died):
        numpyro.sample("days", dist.Weibull(scale, shape), obs=days)
    survived = -((days / scale) ** shape)
    numpyro.factor("censored", jnp.where(died, 0.0, survived).sum())


def _weibull_data():
    rng = np.random.default_rng(801)
    age = np.round(rng.uniform(35.0, 80.0, 120))
    treated = rng.binomial(1, 0.5, 120).astype(float)
    scale = np.exp(8.0 - 0.03 * age + 0.5 * treated)
    days = np.ceil(scale * rng.weibull(1.4, 120))
    return age, treated, np.minimum(days, 500.0), days < 500.0


def _frailty(clinic, num_clinics, risk, years, relapsed):
    log_hazard = numpyro.sample("log_hazard", dist.Normal(0.0, 5.0))
    b_risk = numpyro.sample("b_risk", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("clinics", num_clinics):
        frailty = numpyro.sample("frailty", dist.Normal(0.0, spread))
    hazard = jnp.exp(log_hazard + b_risk * risk + frailty[clinic])
    log_density = jnp.where(relapsed, jnp.log(hazard), 0.0) - hazard * years
    numpyro.factor("likelihood", log_density.sum())


def _frailty_data():
    rng = np.random.default_rng(802)
    clinic = np.repeat(np.arange(15), 8)
    risk = rng.normal(size=120)
    frailty = rng.normal(0.0, 0.5, 15)
    hazard = np.exp(-1.5 + 0.6 * risk + frailty[clinic])
    years = rng.exponential(1.0 / hazard)
    limit = rng.uniform(1.0, 6.0, 120)
    return clinic, 15, risk, np.minimum(years, limit), years < limit


MODELS = (
    ZooModel(
        name="weibull_censored",
        model=_weibull,
        kind="survival",
        split="development",
        description="Weibull survival in days with age in years, a third censored: "
        "random starts overflow.",
        args=_weibull_data(),
        reference=WhitenedNUTS(
            {"intercept": 8.0, "b_age": -0.03, "b_treated": 0.5, "shape": 1.4}
        ),
    ),
    ZooModel(
        name="frailty",
        model=_frailty,
        kind="survival",
        split="report",
        description="Exponential survival with a centred random effect by clinic: a "
        "funnel with data.",
        args=_frailty_data(),
        reference=LongNUTS(
            provenance="NUTS on the non-centred twin, mapped back",
            model=numpyro.handlers.reparam(
                _frailty, config={"frailty": LocScaleReparam(0)}
            ),
            accept=0.95,
        ),
    ),
)
