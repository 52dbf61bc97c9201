"""What all tests share."""

import os

import jax

from softcvi._compile import enable_x64

# Tests say jax.enable_x64, which the oldest JAX that is allowed does not have.
jax.enable_x64 = enable_x64
# Tests must not depend on what an earlier run has left in the user's folder.
os.environ.setdefault("SOFTCVI_CACHE", "0")
