"""Uniform numbers that are fine near zero, for draws whose tail is read off there."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32


def open_uniform(
    key: PRNGKeyArray, shape: tuple[int, ...], dtype
) -> Float[Array, "..."]:
    """Uniform on (0, 1] in steps of 2**-64 near zero; never zero.

    ``jax.random.uniform`` has steps of 2**-23 in single precision: the first step
    holds all draws of a tail beyond one in eight million, and takes all of them to
    the smallest number there is.

    Args:
        key: Random key.
        shape: Shape of the numbers.
        dtype: Their dtype.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> bool(open_uniform(jax.random.key(0), (1000,), jnp.float32).min() > 0)
        True
    """
    high, low = jax.random.bits(key, (2, *shape), jnp.uint32)
    return joined(high, low, dtype)


def joined(
    high: UInt32[Array, "..."], low: UInt32[Array, "..."], dtype
) -> Float[Array, "..."]:
    """A uniform number on (0, 1] from two random words."""
    return (high.astype(dtype) + (low.astype(dtype) + 0.5) * 2.0**-32) * 2.0**-32
