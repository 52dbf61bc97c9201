"""Accelerators round products to 10 bits unless they are asked not to."""

import jax
import jax.numpy as jnp

import softcvi


def test_every_program_computes_products_in_full_precision():
    asked = set()

    def log_prob(x):
        asked.add(jax.config.jax_default_matmul_precision)
        return -0.5 * jnp.sum(x**2)

    target = softcvi.DensityTarget(log_prob, jnp.zeros(2))
    asked.clear()  # what is traced for its shape alone computes nothing
    result = softcvi.fit(jax.random.key(0), target, steps=20, progress=False)
    assert result.verdict.evidence.weights is not None
    assert asked == {"highest"}
