"""Double precision for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def double_precision() -> Iterator[None]:
    """Compute in float64 inside, and leave JAX as it was.

    A reference must not inherit rounding from the setting of the day.

    Example:
        >>> import jax.numpy as jnp
        >>> with double_precision():
        ...     jnp.zeros(()).dtype
        dtype('float64')
    """
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
