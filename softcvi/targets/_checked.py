"""A check of what a user's log density returns, before anything is added to it."""

import jax.numpy as jnp
from jaxtyping import Array


def as_log_density(
    value: Array | float | None, name: str = "log_prob"
) -> Array | float:
    """Refuse integers and booleans, which adding a Jacobian would hide, and None."""
    if value is None:
        raise TypeError(
            f"{name}: returned None. Check that every branch of the function returns "
            "the log density."
        )
    dtype = jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"{name}: the log density must be a float; it is {dtype}. Return a float, "
            "e.g. with .astype(float)."
        )
    return value
