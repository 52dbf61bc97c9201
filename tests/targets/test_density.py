"""Plain densities: whether JAX can differentiate them is found out, not asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import DensityTarget
from softcvi.fitting import Silent


def outside_jax(x):
    def density(x):
        return np.float32(-0.5 * np.sum((np.asarray(x) - 2) ** 2))

    like = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(density, like, x, vmap_method="sequential")


def halved_until_small(x):
    end = jax.lax.while_loop(lambda v: jnp.sum(v**2) > 1e-3, lambda v: 0.5 * v, x)
    return -jnp.sum((x + end) ** 2)


def test_gradients_are_looked_for():
    like = jnp.zeros(2)
    assert softcvi.DensityTarget(lambda x: -jnp.sum(x**2), like).has_gradient
    assert not softcvi.DensityTarget(outside_jax, like).has_gradient
    assert not softcvi.DensityTarget(halved_until_small, like).has_gradient
    # What does not even evaluate is explained by the checks of a fit.
    assert softcvi.DensityTarget(lambda x: x["a"], like).has_gradient


def test_a_density_outside_jax_is_fitted_as_it_is():
    target = softcvi.DensityTarget(outside_jax, jnp.zeros(2))
    result = softcvi.fit(jax.random.key(0), target, steps=3_000, progress=Silent())
    draws = result.sample(jax.random.key(1), 1_000)["value"]
    # The means have a Monte Carlo error of 0.03 at the posterior, whose sd is 1.
    np.testing.assert_allclose(draws.mean(axis=0), 2.0, atol=0.2)


def test_a_batch_of_all_rows_is_the_data_set():
    """Drawn with replacement, a third of the rows would be missing from each step."""
    rows = jnp.arange(7.0)
    target = softcvi.targets.MiniBatchTarget(
        lambda t: -0.5 * t**2,
        lambda t, x: -0.5 * jnp.sum((x - t) ** 2),
        like=jnp.zeros(()),
        data=rows,
        batch_size=7,
    )
    np.testing.assert_array_equal(target.draw_data(jax.random.key(0)), rows)


@pytest.mark.parametrize("value", [(0.0,), [0.0], {"lp": 0.0}, "0.0"])
def test_a_density_that_returns_no_number_is_told_so(value):
    target = DensityTarget(lambda x: value, jnp.zeros(2))
    with pytest.raises(TypeError, match=r"log_prob: .* must be a number; it is a"):
        target.log_density(jnp.zeros(2))
