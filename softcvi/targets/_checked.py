"""A check of what a user's log density returns, before anything is added to it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float


def as_log_density(value: Any, name: str = "log_prob") -> Float[ArrayLike, "..."]:
    """Refuse integers and booleans, which adding a Jacobian would hide, and None."""
    if value is None:
        raise TypeError(
            f"{name}: returned None. Check that every branch of the function returns "
            "the log density."
        )
    if not isinstance(value, jax.Array | np.ndarray | np.generic | float | int):
        raise TypeError(
            f"{name}: the log density must be a number; it is a "
            f"{type(value).__name__}. Return the number alone."
        )
    dtype = jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"{name}: the log density must be a float; it is {dtype}. Return a float, "
            "e.g. with .astype(float)."
        )
    return value
