"""Priors that are normal and independent, by the names of the sites."""

import jax.numpy as jnp


def around(theta, **sites) -> jnp.ndarray:
    """Log density of independent normals, but for a constant.

    Args:
        theta: Sites by name.
        **sites: Mean and standard deviation of each.

    Example:
        >>> theta = {"a": jnp.array(3.0), "b": jnp.zeros(2)}
        >>> float(around(theta, a=(1.0, 2.0), b=(1.0, 1.0)))
        -1.5
    """
    rows = [
        -0.5 * jnp.sum(((theta[name] - mean) / sd) ** 2)
        for name, (mean, sd) in sites.items()
    ]
    return sum(rows)
