"""Names that moved between versions of JAX."""

try:
    from jax import enable_x64 as enable_x64
except ImportError:  # before JAX 0.8
    from jax.experimental import enable_x64 as enable_x64
