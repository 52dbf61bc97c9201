import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import as_blackjax


def test_the_triple_has_the_shape_of_blackjaxs_and_learns():
    target = softcvi.DensityTarget(
        lambda t: -0.5 * jnp.sum(((t["x"] - 2.0) / 0.5) ** 2), {"x": jnp.zeros(2)}
    )
    algorithm = as_blackjax(target)
    blackjax = pytest.importorskip("blackjax")
    assert algorithm._fields == blackjax.base.VIAlgorithm._fields

    def one_step(state, key):
        state, info = algorithm.step(key, state)
        return state, info.excess

    keys = jax.random.split(jax.random.key(0), 3000)
    state, excess = jax.lax.scan(one_step, algorithm.init(), keys)
    draws = algorithm.sample(jax.random.key(1), state, 4000)["x"]
    np.testing.assert_allclose(draws.mean(0), 2.0, atol=0.05)
    np.testing.assert_allclose(draws.std(0), 0.5, rtol=0.05)
    assert excess[-100:].mean() < 0.01 * excess[:100].mean()
