"""What all tests share."""

import jax

from softcvi._compile import enable_x64

# Tests say jax.enable_x64, which the oldest JAX that is allowed does not have.
jax.enable_x64 = enable_x64
