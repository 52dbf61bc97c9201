"""References by the no-U-turn sampler: eight schools and GARCH(1,1).

The models are written here in NumPyro, apart from the densities of the tasks, so that
the two can be checked against each other.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi_experiments.nuts import sample_model
from softcvi_experiments.references._precision import double_precision
from softcvi_experiments.references._record import Reference

EIGHT_SCHOOLS = {
    "y": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "sigma": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}
GARCH_TRUTH = {"mu": 5.0, "alpha0": 1.4, "alpha1": 0.55, "beta1": 0.3}

NUM_CHAINS = 40
DRAWS_PER_CHAIN = 250  # what is kept of each: 10,000 draws in all


def eight_schools_model(
    y: Float[np.ndarray, " 8"], sigma: Float[np.ndarray, " 8"]
) -> None:
    """The eight schools model, not centred.

    Example:
        >>> import numpyro
        >>> from numpyro import handlers
        >>> with handlers.seed(rng_seed=0):
        ...     trace = handlers.trace(eight_schools_model).get_trace(**EIGHT_SCHOOLS)
        >>> sorted(trace)
        ['mu', 'tau', 'theta', 'theta_std', 'y']
    """
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    theta_std = numpyro.sample("theta_std", dist.Normal(0.0, 1.0).expand([8]))
    theta = numpyro.deterministic("theta", mu + tau * theta_std)
    numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def garch_model(
    y: Float[np.ndarray, " time"], variant: Literal["paper", "posteriordb"]
) -> None:
    """GARCH(1,1) under the paper's recursion and prior or under posteriordb's.

    posteriordb's model states no prior, so its density is flat on the triangle of
    ``alpha1`` and ``beta1``, while the paper's ``beta1`` is uniform given ``alpha1``.

    Args:
        y: The series.
        variant: Whose model.

    Example:
        >>> import numpyro
        >>> from numpyro import handlers
        >>> values = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "beta1_std": 0.5}
        >>> model = handlers.substitute(garch_model, values)
        >>> trace = handlers.trace(model).get_trace(np.zeros(5), "paper")
        >>> float(trace["beta1"]["value"])
        0.25
    """
    import numpyro
    import numpyro.distributions as dist

    improper = dist.ImproperUniform
    mu = numpyro.sample("mu", improper(dist.constraints.real, (), ()))
    alpha0 = numpyro.sample("alpha0", improper(dist.constraints.positive, (), ()))
    alpha1 = numpyro.sample("alpha1", dist.Uniform(0.0, 1.0))
    beta1_std = numpyro.sample("beta1_std", dist.Uniform(0.0, 1.0))
    beta1 = numpyro.deterministic("beta1", (1 - alpha1) * beta1_std)
    y = jnp.asarray(y)
    if variant == "posteriordb":
        numpyro.factor("flat_on_the_triangle", jnp.log1p(-alpha1))
        rest = garch_variance(y[:-1], mu, alpha0, alpha1, beta1)
        variance = jnp.concatenate([jnp.full(1, 0.25), rest])
    else:
        previous = jnp.concatenate([y[:1], y[:-1]])
        variance = garch_variance(previous, mu, alpha0, alpha1, beta1)
    numpyro.sample("y", dist.Normal(mu, jnp.sqrt(variance)), obs=y)


def garch_variance(
    previous: Float[Array, " time"], mu: Any, alpha0: Any, alpha1: Any, beta1: Any
) -> Float[Array, " time"]:
    """Variances by the recursion, from 0.25, one for every previous point.

    Example:
        >>> garch_variance(jnp.ones(2), 0.0, 1.0, 0.5, 0.0)
        Array([1.5, 1.5], dtype=...)
    """

    def step(variance: Array, y: Array) -> tuple[Array, Array]:
        variance = alpha0 + alpha1 * (y - mu) ** 2 + beta1 * variance
        return variance, variance

    start = jnp.asarray(0.25, jnp.result_type(previous, alpha0))
    return jax.lax.scan(step, start, previous, unroll=8)[1]


def simulate_garch(key: PRNGKeyArray, length: int = 200) -> Float[np.ndarray, " time"]:
    """Simulate a series at ``GARCH_TRUTH``, by the paper's recursion.

    Args:
        key: Random key.
        length: Number of points.

    Example:
        >>> simulate_garch(jr.key(0)).shape
        (200,)
    """
    mu, alpha0, alpha1, beta1 = GARCH_TRUTH.values()

    def step(carry: tuple[Array, Array], noise: Array) -> tuple[tuple, Array]:
        variance, y = carry
        variance = alpha0 + alpha1 * (y - mu) ** 2 + beta1 * variance
        y = mu + jnp.sqrt(variance) * noise
        return (variance, y), y

    with double_precision():
        noise = jr.normal(key, (length,), dtype="float64")
        start = (jnp.asarray(0.25, float), jnp.asarray(mu, float))
        return np.asarray(jax.lax.scan(step, start, noise)[1])


def sample_eight_schools(
    key: PRNGKeyArray,
    *,
    observed: dict[str, np.ndarray] = EIGHT_SCHOOLS,
    thinning: int = 20,
) -> Reference:
    """Draw from the eight schools posterior by NUTS.

    Args:
        key: Random key.
        observed: The data.
        thinning: Keep every so many draws.
    """
    return _sample(
        key, "eight_schools", eight_schools_model, observed, ("mu", "tau", "theta"),
        model_args=(observed["y"], observed["sigma"]), thinning=thinning,
    )  # fmt: skip


def sample_garch(
    key: PRNGKeyArray,
    y: Float[np.ndarray, " time"],
    variant: Literal["paper", "posteriordb"],
    *,
    thinning: int = 5,
) -> Reference:
    """Draw from a GARCH posterior by NUTS.

    Args:
        key: Random key.
        y: The series.
        variant: Whose recursion and prior.
        thinning: Keep every so many draws.
    """
    return _sample(
        key, f"garch_{variant}", garch_model, {"y": y, "sigma1": np.array(0.5)},
        ("mu", "alpha0", "alpha1", "beta1"), model_args=(y, variant), thinning=thinning,
    )  # fmt: skip


def _sample(
    key: PRNGKeyArray,
    name: str,
    model: Callable,
    observed: dict[str, np.ndarray],
    names: tuple[str, ...],
    *,
    model_args: tuple,
    thinning: int,
) -> Reference:
    import numpyro
    from numpyro.infer import init_to_median

    warmup = 2000
    with double_precision():
        run = sample_model(
            key,
            model,
            model_args,
            chains=NUM_CHAINS,
            warmup=warmup,
            samples=DRAWS_PER_CHAIN * thinning,
            thinning=thinning,
            target_accept_prob=0.98,
            init_strategy=init_to_median(num_samples=50),
        )
    provenance = {
        "source": "softcvi references build",
        "method": f"NumPyro {numpyro.__version__} NUTS, float64, {NUM_CHAINS} chains",
        "warmup": warmup,
        "draws_per_chain": DRAWS_PER_CHAIN,
        "thinning": thinning,
        "divergences_among_kept": run.divergences,
    }
    return Reference.from_chains(
        name, {k: run.by_chain[k] for k in names}, observed, provenance
    )
