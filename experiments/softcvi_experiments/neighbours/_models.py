"""Models of NumPyro's own examples, on data that need no download."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

# Efron and Morris (1975): hits of 18 players in their first 45 times at bat in 1970.
HITS = np.array([18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7])
AT_BATS = 45


@dataclass(frozen=True)
class Case:
    """A model with its data, and what is compared with NUTS.

    Attributes:
        name: Shown in the table.
        model: The model as fitted.
        args: Its arguments.
        sites: Sites that are compared.
        marginal: The model for NUTS, if that is another one (NUTS cannot draw discrete
            sites, which are summed out there).
    """

    name: str
    model: Callable
    args: tuple[Any, ...]
    sites: tuple[str, ...]
    marginal: Callable | None = None


def regression(x, y):
    """Bayesian linear regression."""
    intercept = numpyro.sample("intercept", dist.Normal(0, 1))
    with numpyro.plate("features", x.shape[1]):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.Exponential(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(intercept + x @ slope, sigma), obs=y)


def baseball(hits):
    """The partially pooled logistic model of NumPyro's baseball example."""
    loc = numpyro.sample("loc", dist.Normal(-1, 1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1))
    with numpyro.plate("players", len(hits)):
        base = numpyro.sample("base", dist.Normal(0, 1))
        logit = numpyro.deterministic("logit", loc + scale * base)
        numpyro.sample("hits", dist.Binomial(AT_BATS, logits=logit), obs=hits)


def stochastic_volatility(returns):
    """A Gaussian random walk of log volatility, as in NumPyro's example."""
    step = numpyro.sample("step", dist.Exponential(50.0))
    walk = dist.GaussianRandomWalk(scale=step, num_steps=len(returns))
    log_volatility = numpyro.sample("log_volatility", walk)
    nu = numpyro.sample("nu", dist.Exponential(0.1))
    with numpyro.plate("time", len(returns)):
        scale = jnp.exp(log_volatility)
        numpyro.sample("returns", dist.StudentT(nu, 0.0, scale), obs=returns)


def mixture(x):
    """A mixture of two normals with an assignment for every point."""
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    low = numpyro.sample("low", dist.Normal(-2, 1))
    high = numpyro.sample("high", dist.Normal(2, 1))
    with numpyro.plate("points", len(x)):
        z = numpyro.sample("z", dist.Bernoulli(share))
        numpyro.sample("x", dist.Normal(jnp.where(z == 1, high, low), 1.0), obs=x)


def mixture_summed_out(x):
    """The same with the assignments summed out."""
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    low = numpyro.sample("low", dist.Normal(-2, 1))
    high = numpyro.sample("high", dist.Normal(2, 1))
    weights = dist.Categorical(jnp.stack([1 - share, share]))
    parts = dist.Normal(jnp.stack([low, high]), 1.0)
    with numpyro.plate("points", len(x)):
        numpyro.sample("x", dist.MixtureSameFamily(weights, parts), obs=x)


def cases() -> list[Case]:
    """All cases, with fixed data.

    Example:
        >>> [case.name for case in cases()][:2]
        ['linear regression (diabetes)', 'hierarchical logistic (baseball)']
    """
    from sklearn.datasets import load_diabetes

    rng = np.random.default_rng(0)
    diabetes = load_diabetes()
    x = diabetes.data / diabetes.data.std(axis=0)
    y = (diabetes.target - diabetes.target.mean()) / diabetes.target.std()
    volatility = np.exp(np.cumsum(0.1 * rng.normal(size=50)) - 4.0)
    returns = volatility * rng.normal(size=50)
    points = np.concatenate([rng.normal(-1.5, 1, 18), rng.normal(2.0, 1, 12)])
    return [
        Case(
            "linear regression (diabetes)",
            regression,
            (x, y),
            ("intercept", "slope", "sigma"),
        ),
        Case(
            "hierarchical logistic (baseball)",
            baseball,
            (HITS,),
            ("loc", "scale", "logit"),
        ),
        Case(
            "stochastic volatility (50 days)",
            stochastic_volatility,
            (returns,),
            ("step", "nu", "log_volatility"),
        ),
        Case(
            "mixture with assignments (30 points)",
            mixture,
            (points,),
            ("share", "low", "high"),
            mixture_summed_out,
        ),
    ]
