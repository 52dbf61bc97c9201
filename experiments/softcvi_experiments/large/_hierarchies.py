"""Large hierarchies as NumPyro models: as people write them, and as NUTS wants them."""

import jax
import jax.numpy as jnp
import numpy as np

from softcvi.adapters import from_numpyro
from softcvi_experiments.large._posterior import Bounds, LargePosterior

_BOUNDS = Bounds(mean=0.1, sd=0.1, share=0.99)


def grouped_logistic(groups: int) -> LargePosterior:
    """Logistic regressions of two coefficients per group, 8 rows each.

    The coefficients of the groups are normal with unknown means, standard deviations
    and correlation: five parameters of the population.

    Args:
        groups: Number of groups.
    """
    import numpyro
    import numpyro.distributions as dist

    rng = np.random.default_rng(groups)
    x = rng.normal(size=(groups, 8))
    true = np.array([-0.5, 1.0]) + rng.normal(size=(groups, 2)) * [0.8, 0.5]
    logits = true[:, :1] + true[:, 1:] * x
    y = (rng.uniform(size=x.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)
    x = x.astype(np.float32)

    def population():
        mu = numpyro.sample("mu", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
        tau = numpyro.sample("tau", dist.HalfNormal(1.0).expand([2]).to_event(1))
        factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
        return mu, tau[:, None] * factor

    def observe(beta):
        logits = beta[:, :1] + beta[:, 1:] * x
        numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(1), obs=y)

    def model():
        mu, factor = population()
        with numpyro.plate("groups", groups):
            beta = numpyro.sample(
                "beta", dist.MultivariateNormal(mu, scale_tril=factor)
            )
            observe(beta)

    def for_nuts():
        mu, factor = population()
        with numpyro.plate("groups", groups):
            unit = dist.Normal(0.0, 1.0).expand([2]).to_event(1)
            z = numpyro.sample("z", unit)
            beta = numpyro.deterministic("beta", mu + z @ factor.T)
            observe(beta)

    return LargePosterior(
        from_numpyro(model),
        _BOUNDS,
        model=for_nuts,
        sites=("mu", "tau", "beta"),
    )


def item_response(persons: int, items: int) -> LargePosterior:
    """Two-parameter item response: an ability per person, two numbers per item.

    Args:
        persons: Number of persons.
        items: Number of items.
    """
    import numpyro
    import numpyro.distributions as dist

    rng = np.random.default_rng(persons)
    ability = rng.normal(size=(persons, 1))
    slope, difficulty = np.exp(0.3 * rng.normal(size=items)), rng.normal(size=items)
    logits = slope * (ability - difficulty)
    y = (rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)

    def model():
        with numpyro.plate("items", items):
            slope = numpyro.sample("slope", dist.LogNormal(0.0, 0.5))
            difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 2.0))
        with numpyro.plate("persons", persons):
            ability = numpyro.sample("ability", dist.Normal(0.0, 1.0))
            logits = slope * (ability[:, None] - difficulty)
            numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(1), obs=y)

    return LargePosterior(
        from_numpyro(model),
        _BOUNDS,
        model=model,
        sites=("slope", "difficulty", "ability"),
    )


def state_space(length: int) -> LargePosterior:
    """Counts whose log rate is a stationary autoregression of unknown size.

    Args:
        length: Number of steps.
    """
    import numpyro
    import numpyro.distributions as dist

    rng = np.random.default_rng(length)
    persistence, scale, level = 0.95, 0.3, 1.0
    noise = rng.normal(size=length)
    state = np.zeros(length)
    state[0] = scale / np.sqrt(1 - persistence**2) * noise[0]
    for t in range(1, length):
        state[t] = persistence * state[t - 1] + scale * noise[t]
    counts = rng.poisson(np.exp(level + state))

    def population():
        level = numpyro.sample("level", dist.Normal(0.0, 2.0))
        scale = numpyro.sample("scale", dist.LogNormal(-1.0, 1.0))
        persistence = numpyro.sample("persistence", dist.Beta(10.0, 2.0))
        return level, scale, persistence

    def model():
        level, scale, persistence = population()
        first = scale / jnp.sqrt(1 - persistence**2)
        # One site for all steps, by the joint density of the autoregression.
        state = numpyro.sample(
            "state", dist.ImproperUniform(dist.constraints.real_vector, (), (length,))
        )
        numpyro.factor("first", dist.Normal(0.0, first).log_prob(state[0]))
        steps = dist.Normal(persistence * state[:-1], scale).log_prob(state[1:])
        numpyro.factor("steps", jnp.sum(steps))
        with numpyro.plate("time", length):
            numpyro.sample("y", dist.Poisson(jnp.exp(level + state)), obs=counts)

    def for_nuts():
        level, scale, persistence = population()
        with numpyro.plate("time", length):
            z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        first = z[0] / jnp.sqrt(1 - persistence**2)

        def step(previous, noise):
            new = persistence * previous + noise
            return new, new

        rest = jax.lax.scan(step, first, z[1:])[1]
        state = scale * jnp.concatenate([first[None], rest])
        state = numpyro.deterministic("state", state)
        with numpyro.plate("steps", length):
            numpyro.sample("y", dist.Poisson(jnp.exp(level + state)), obs=counts)

    return LargePosterior(
        from_numpyro(model),
        _BOUNDS,
        model=for_nuts,
        sites=("level", "scale", "persistence", "state"),
    )
