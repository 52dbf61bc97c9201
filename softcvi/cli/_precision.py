"""Double precision for one command."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def double_precision(wanted: bool) -> Iterator[None]:
    """Compute in double precision, and restore the setting afterwards."""
    before = jax.config.jax_enable_x64
    if wanted:
        jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
