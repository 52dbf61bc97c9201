"""Hierarchical models, centred and not."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.reparam import LocScaleReparam

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import LongNUTS

# Rubin (1981): estimated effects of coaching in eight schools.
_EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _schools_centred(error, effect=None):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", len(error)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effect", dist.Normal(theta, error), obs=effect)


def _schools_noncentred(error, effect=None):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", len(error)):
        standardised = numpyro.sample("standardised", dist.Normal(0.0, 1.0))
        theta = numpyro.deterministic("theta", mu + tau * standardised)
        numpyro.sample("effect", dist.Normal(theta, error), obs=effect)


def _radon(county, basement_free, uranium, log_radon=None):
    gamma = numpyro.sample("gamma", dist.Normal(0.0, 10.0).expand([2]).to_event(1))
    sigma_county = numpyro.sample("sigma_county", dist.HalfNormal(1.0))
    with numpyro.plate("counties", len(uranium)):
        intercept = numpyro.sample(
            "intercept", dist.Normal(gamma[0] + gamma[1] * uranium, sigma_county)
        )
    slope = numpyro.sample("slope", dist.Normal(0.0, 10.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    mean = intercept[county] + slope * basement_free
    numpyro.sample("log_radon", dist.Normal(mean, sigma), obs=log_radon)


def _radon_data():
    rng = np.random.default_rng(201)
    sizes = rng.geometric(0.2, 30)
    county = np.repeat(np.arange(30), sizes)
    uranium = rng.normal(0.0, 0.4, 30)
    intercept = rng.normal(1.4 + 0.7 * uranium, 0.25)
    basement_free = rng.binomial(1, 0.2, len(county)).astype(float)
    mean = intercept[county] - 0.7 * basement_free
    return county, basement_free, uranium, rng.normal(mean, 0.75)


def _reaction(subject, day, num_subjects, reaction=None):
    mean = numpyro.sample(
        "mean", dist.Normal(jnp.array([250.0, 0.0]), jnp.array([100.0, 50.0]))
    )
    spread = numpyro.sample("spread", dist.HalfNormal(jnp.array([100.0, 50.0])))
    cholesky = numpyro.sample("cholesky", dist.LKJCholesky(2, 2.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(100.0))
    with numpyro.plate("subjects", num_subjects):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    line = mean + (z @ cholesky.T) * spread
    numpyro.sample(
        "reaction",
        dist.Normal(line[subject, 0] + line[subject, 1] * day, sigma),
        obs=reaction,
    )


def _reaction_data():
    rng = np.random.default_rng(202)
    subject = np.repeat(np.arange(12), 8)
    day = np.tile(np.arange(8.0), 12)
    covariance = np.array([[25.0**2, 0.2 * 25 * 6], [0.2 * 25 * 6, 6.0**2]])
    line = rng.multivariate_normal([252.0, 10.0], covariance, 12)
    mean = line[subject, 0] + line[subject, 1] * day
    return subject, day, 12, rng.normal(mean, 26.0)


def _items(person, item, num_persons, num_items, correct=None):
    with numpyro.plate("items", num_items):
        difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 2.0))
        discrimination = numpyro.sample("discrimination", dist.LogNormal(0.0, 0.5))
    with numpyro.plate("persons", num_persons):
        ability = numpyro.sample("ability", dist.Normal(0.0, 1.0))
    logits = discrimination[item] * (ability[person] - difficulty[item])
    numpyro.sample("correct", dist.Bernoulli(logits=logits), obs=correct)


def _items_data():
    rng = np.random.default_rng(203)
    person, item = (a.ravel() for a in np.indices((40, 12)))
    ability = rng.normal(size=40)
    difficulty = rng.normal(0.0, 1.3, 12)
    discrimination = rng.lognormal(0.0, 0.4, 12)
    logits = discrimination[item] * (ability[person] - difficulty[item])
    return person, item, 40, 12, rng.binomial(1, 1.0 / (1.0 + np.exp(-logits)))


MODELS = (
    ZooModel(
        name="eight_schools_centred",
        model=_schools_centred,
        kind="hierarchical",
        split="development",
        description="Eight schools, centred: a funnel between tau and the effects.",
        args=(_ERROR, _EFFECT),
        reference=LongNUTS(
            provenance="NUTS on the non-centred twin, mapped back",
            model=_schools_noncentred,
            accept=0.95,
            samples=2_000,
        ),
    ),
    ZooModel(
        name="eight_schools_noncentred",
        model=_schools_noncentred,
        kind="hierarchical",
        split="report",
        description="Eight schools, non-centred: a heavy-tailed scale.",
        args=(_ERROR, _EFFECT),
        reference=LongNUTS(accept=0.95, samples=2_000),
    ),
    ZooModel(
        name="radon_intercepts",
        model=_radon,
        kind="hierarchical",
        split="development",
        description="Varying intercepts with a group covariate; a third of the 30 "
        "counties have one or two houses.",
        args=_radon_data(),
        reference=LongNUTS(
            provenance="NUTS on the non-centred twin, mapped back",
            model=numpyro.handlers.reparam(
                _radon, config={"intercept": LocScaleReparam(0)}
            ),
        ),
    ),
    ZooModel(
        name="varying_slopes",
        model=_reaction,
        kind="hierarchical",
        split="report",
        description="Correlated varying intercepts and slopes in milliseconds, with "
        "a Cholesky factor of a correlation matrix.",
        args=_reaction_data(),
        reference=LongNUTS(accept=0.95, samples=1_500),
    ),
    ZooModel(
        name="item_response",
        model=_items,
        kind="latent variables",
        split="development",
        description="Two-parameter logistic item response, 40 persons and 12 items: "
        "64 parameters, discrimination multiplies ability.",
        args=_items_data(),
    ),
)
