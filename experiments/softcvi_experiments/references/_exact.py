"""Linear regression, whose posterior is a normal in closed form."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

NUM_POINTS = 200
NUM_COVARIATES = 50


@jax.jit
def simulate_linear_regression(key: PRNGKeyArray) -> dict[str, Float[Array, "..."]]:
    """Draw covariates, coefficients and observations, new for every key.

    Args:
        key: Random key.

    Example:
        >>> data = simulate_linear_regression(jr.key(0))
        >>> data["x"].shape, data["y"].shape
        ((200, 50), (200,))
    """
    x_key, beta_key, mu_key, noise_key = jr.split(key, 4)
    x = jr.normal(x_key, (NUM_POINTS, NUM_COVARIATES))
    beta = jr.normal(beta_key, (NUM_COVARIATES,))
    mu = jr.normal(mu_key)
    y = x @ beta + mu + jr.normal(noise_key, (NUM_POINTS,))
    return {"x": x, "y": y}


@jax.jit
def linear_regression_posterior(
    x: Float[Array, "points covariates"], y: Float[Array, " points"]
) -> tuple[Float[Array, " parameters"], Float[Array, "parameters parameters"]]:
    """Mean of the posterior and Cholesky factor of its precision, bias last.

    Args:
        x: Covariates.
        y: Observations.

    Example:
        >>> mean, factor = linear_regression_posterior(jnp.eye(2), jnp.zeros(2))
        >>> mean.shape, factor.shape
        ((3,), (3, 3))
    """
    design = jnp.column_stack([x, jnp.ones(len(x), x.dtype)])
    precision = design.T @ design + jnp.eye(design.shape[1], dtype=x.dtype)
    factor = jnp.linalg.cholesky(precision)
    half = jnp.linalg.solve(factor, design.T @ y)
    return jnp.linalg.solve(factor.T, half), factor


@functools.partial(jax.jit, static_argnames="num_draws")
def draw_linear_regression(
    key: PRNGKeyArray,
    x: Float[Array, "points covariates"],
    y: Float[Array, " points"],
    num_draws: int = 10_000,
) -> dict[str, Float[Array, "..."]]:
    """Exact posterior draws; may be compiled and batched over data sets.

    Args:
        key: Random key.
        x: Covariates.
        y: Observations.
        num_draws: Number of draws.

    Example:
        >>> data = simulate_linear_regression(jr.key(0))
        >>> draws = draw_linear_regression(jr.key(1), **data, num_draws=4)
        >>> draws["beta"].shape, draws["mu"].shape
        ((4, 50), (4,))
    """
    mean, factor = linear_regression_posterior(x, y)
    noise = jr.normal(key, (num_draws, len(mean)), x.dtype)
    draws = mean + jnp.linalg.solve(factor.T, noise.T).T
    return {"beta": draws[:, :-1], "mu": draws[:, -1]}


@jax.jit
def best_factorised_log_prob(
    x: Float[Array, "points covariates"],
) -> Float[Array, ""]:
    """The mean log probability that the best independent normals reach.

    They have the posterior's own marginals: ``-0.5 sum log(2 pi e var_i)``.

    Args:
        x: Covariates.

    Example:
        >>> data = simulate_linear_regression(jr.key(0))
        >>> bool(50 < best_factorised_log_prob(data["x"]) < 60)
        True
    """
    _, factor = linear_regression_posterior(x, jnp.zeros(len(x), x.dtype))
    inverse = jnp.linalg.inv(factor)
    variance = jnp.sum(inverse**2, axis=0)
    return -0.5 * jnp.sum(jnp.log(2 * jnp.pi * jnp.e * variance))
