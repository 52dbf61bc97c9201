"""Time series: autoregressions, volatility, change points, hidden states."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from softcvi_experiments.zoo._model import ZooModel
from softcvi_experiments.zoo._strategies import LongNUTS, WhitenedNUTS


def _autoregression(y, order):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 10.0))
    phi = numpyro.sample("phi", dist.Normal(0.0, 1.0).expand([order]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    lags = jnp.stack([y[order - k : len(y) - k] for k in range(1, order + 1)], axis=1)
    numpyro.sample("y", dist.Normal(intercept + lags @ phi, sigma), obs=y[order:])


def _autoregression_data():
    rng = np.random.default_rng(501)
    y = np.full(120, 40.0)
    for t in range(3, 120):
        y[t] = 4.0 + 1.2 * y[t - 1] - 0.5 * y[t - 2] + 0.2 * y[t - 3] + rng.normal()
    return y, 3


def _arma(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 10.0))
    phi = numpyro.sample("phi", dist.Normal(0.0, 2.0))
    theta = numpyro.sample("theta", dist.Normal(0.0, 2.0))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))

    def step(carry, value):
        previous, error = carry
        error = value - (mu + phi * previous + theta * error)
        return (value, error), error

    first = y[0] - (mu + phi * mu)
    _, errors = jax.lax.scan(step, (jnp.asarray(y[0]), first), jnp.asarray(y[1:]))
    errors = jnp.concatenate([first[None], errors])
    numpyro.factor("likelihood", dist.Normal(0.0, sigma).log_prob(errors).sum())


def _arma_data():
    rng = np.random.default_rng(502)
    y, noise = np.zeros(120), rng.normal(0.0, 0.8, 120)
    y[0] = 0.5
    for t in range(1, 120):
        y[t] = 0.1 + 0.8 * y[t - 1] + noise[t] + 0.4 * noise[t - 1]
    return (y,)


def _volatility(returns):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    phi = numpyro.sample("phi", dist.Uniform(-1.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("time", len(returns)):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))

    def step(h, innovation):
        h = mu + phi * (h - mu) + sigma * innovation
        return h, h

    first = mu + sigma * z[0] / jnp.sqrt(1.0 - phi**2)
    _, rest = jax.lax.scan(step, first, z[1:])
    h = jnp.concatenate([first[None], rest])
    numpyro.sample("returns", dist.Normal(0.0, jnp.exp(h / 2.0)), obs=returns)


def _volatility_data():
    rng = np.random.default_rng(503)
    h = np.zeros(80)
    h[0] = -1.0
    for t in range(1, 80):
        h[t] = -1.0 + 0.95 * (h[t - 1] + 1.0) + rng.normal(0.0, 0.3)
    return (rng.normal(0.0, np.exp(h / 2.0)),)


def _hidden_markov(y):
    stay = numpyro.sample("stay", dist.Beta(8.0, 2.0).expand([2]).to_event(1))
    low = numpyro.sample("low", dist.Normal(0.0, 5.0))
    gap = numpyro.sample("gap", dist.HalfNormal(5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    emission = dist.Normal(jnp.stack([low, low + gap]), sigma)
    log_like = emission.log_prob(jnp.asarray(y)[:, None])
    move = jnp.stack([stay[0], 1 - stay[0], 1 - stay[1], stay[1]]).reshape(2, 2)
    log_move = jnp.log(move)

    def forward(alpha, here):
        alpha = jax.nn.logsumexp(alpha[:, None] + log_move, axis=0) + here
        return alpha, None

    alpha, _ = jax.lax.scan(forward, log_like[0] + jnp.log(0.5), log_like[1:])
    numpyro.factor("likelihood", jax.nn.logsumexp(alpha))


def _hidden_markov_data():
    rng = np.random.default_rng(504)
    state, states = 0, []
    for _ in range(100):
        state = state if rng.random() < (0.9, 0.8)[state] else 1 - state
        states.append(state)
    return (rng.normal(np.where(np.array(states) == 0, 1.0, 3.2), 1.0),)


# Jarrett (1979): British coal-mining disasters by year, 1851 to 1962.
_DISASTERS = np.array(
    list(
        "45410434063340263354531441553425223421322111130010110031"
        "03220111010100021000110233112111124200014000100000100101"
    ),
    dtype=float,
)


def _change_point(count):
    early = numpyro.sample("early", dist.Exponential(1.0))
    late = numpyro.sample("late", dist.Exponential(1.0))
    before = jnp.cumsum(dist.Poisson(early).log_prob(count))
    after = jnp.cumsum(dist.Poisson(late).log_prob(count))
    # The year of the change is summed out under a uniform prior.
    by_year = before + after[-1] - after - jnp.log(len(count))
    numpyro.factor("likelihood", jax.nn.logsumexp(by_year))


MODELS = (
    ZooModel(
        name="stochastic_volatility",
        model=_volatility,
        kind="time series",
        split="development",
        description="Log-volatility as an AR(1), 80 returns, 83 parameters.",
        args=_volatility_data(),
        reference=LongNUTS(accept=0.95, samples=1_500),
    ),
    ZooModel(
        name="autoregression",
        model=_autoregression,
        kind="time series",
        split="report",
        description="AR(3) around a level of 40, so that intercept and coefficients "
        "lie on a ridge.",
        args=_autoregression_data(),
        reference=WhitenedNUTS(
            {"intercept": 4.0, "phi": np.array([1.2, -0.5, 0.2]), "sigma": 1.0}
        ),
    ),
    ZooModel(
        name="arma",
        model=_arma,
        kind="time series",
        split="development",
        description="ARMA(1, 1) with a wide prior: random starts explode.",
        args=_arma_data(),
        reference=WhitenedNUTS({"mu": 0.1, "phi": 0.7, "theta": 0.3, "sigma": 0.9}),
    ),
    ZooModel(
        name="hidden_markov",
        model=_hidden_markov,
        kind="discrete summed out",
        split="report",
        description="Two hidden states summed out by the forward algorithm.",
        args=_hidden_markov_data(),
    ),
    ZooModel(
        name="change_point",
        model=_change_point,
        kind="discrete summed out",
        split="development",
        description="Coal-mining disasters with the year of the change summed out.",
        args=(_DISASTERS,),
    ),
)
