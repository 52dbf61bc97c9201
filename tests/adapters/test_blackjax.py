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


def test_the_data_of_a_step_and_its_particles_have_keys_of_their_own():
    seen = []

    class Recording(softcvi.targets.DensityTarget):
        def draw_data(self, key):
            seen.append(("data", key))
            return jnp.zeros(())

        def log_density(self, particle, data=None):
            return -0.5 * jnp.sum(particle["x"] ** 2)

    class Remembering(softcvi.SoftCVI):
        def draw(self, key, guide, target, data=None):
            seen.append(("particles", key))
            return super().draw(key, guide, target, data)

    target = Recording(lambda t: 0.0, {"x": jnp.zeros(2)})
    algorithm = as_blackjax(target, objective=Remembering())
    algorithm.step(jax.random.key(0), algorithm.init())
    keys = dict(seen)
    assert not np.array_equal(
        jax.random.key_data(keys["data"]), jax.random.key_data(keys["particles"])
    )


def test_an_amortised_target_learns_the_posterior_of_each_datum():
    import equinox as eqx

    data = jax.random.normal(jax.random.key(0), (50, 1))
    target = softcvi.targets.AmortisedTarget(
        lambda z, x: -0.5 * jnp.sum(z**2) - 0.5 * jnp.sum((x - z) ** 2),
        like=jnp.zeros(1),
        data=data,
        batch_size=8,
    )
    network = eqx.nn.Linear(1, 2, key=jax.random.key(1))
    distribution = softcvi.guides.NetworkDistribution(
        network,
        lambda out: softcvi.guides.DiagonalNormal(out[:1], jax.nn.softplus(out[1:])),
        shape=(1,),
        cond_shape=(1,),
    )
    guide = softcvi.guides.VectorGuide(distribution, target.like)
    algorithm = as_blackjax(target, guide)
    keys = jax.random.split(jax.random.key(2), 1500)
    state, _ = jax.lax.scan(lambda s, k: algorithm.step(k, s), algorithm.init(), keys)
    datum = jnp.array([1.5])
    draws = algorithm.sample(jax.random.key(3), state, 2000, condition=datum)
    np.testing.assert_allclose(draws["value"].mean(), 0.75, atol=0.1)
    with pytest.raises(ValueError, match="condition"):
        algorithm.sample(jax.random.key(3), state, 10)
