"""Modes whose tails are heavy in each parameter by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi

KEY = jax.random.key(0)
DIM, PARTS = 10, 4
CENTRES = np.random.default_rng(3).uniform(-10.0, 10.0, (PARTS, DIM))


def products_of_t(x, centres):
    tails = jnp.log1p((x - centres) ** 2 / 2.0)
    return jax.nn.logsumexp(-1.5 * jnp.sum(tails, axis=-1))


@pytest.mark.slow
def test_products_of_heavy_tails_are_fitted_and_trusted():
    target = softcvi.DensityTarget(
        products_of_t, jnp.zeros(DIM), observed=jnp.asarray(CENTRES, jnp.float32)
    )
    result = softcvi.fit(KEY, target, progress=False)
    assert result.verdict.trusted
    draws = np.asarray(result.sample(jax.random.key(1), 4000)["value"])
    distance = np.log1p((draws[:, None] - CENTRES) ** 2 / 2.0).sum(-1)
    share = np.bincount(np.argmin(distance, axis=1), minlength=PARTS) / len(draws)
    # 4,000 draws: standard error 0.007, and the fit's own error of the weights.
    np.testing.assert_allclose(share, 0.25, atol=0.03)
