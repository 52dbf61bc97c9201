"""The battery of every optimiser and learning-rate schedule."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from softcvi import fitting

OPTIMIZERS = {
    fitting.Adam: fitting.Adam(fitting.WarmupCosine(0.3)),
    fitting.OptaxOptimizer: fitting.OptaxOptimizer(optax.adam(0.05)),
}
SCHEDULES = {fitting.WarmupCosine, fitting.ConstantRate}


def test_the_battery_knows_every_exported_optimizer_and_schedule(exported):
    assert exported(fitting, fitting.AbstractOptimizer) == set(OPTIMIZERS)
    assert exported(fitting, fitting.AbstractSchedule) == SCHEDULES


@eqx.filter_jit
def minimise(optimizer, trees, total):
    """Steps on a quadratic, whose minimum is at one in every scalar."""

    def one(tree):
        params = ravel_pytree(tree)[0] if optimizer.flat else tree

        def body(step, carry):
            params, state = carry
            grads = jax.tree_util.tree_map(lambda p: p - 1.0, params)
            return optimizer.update(grads, state, params, step, total)

        return jax.lax.fori_loop(0, total, body, (params, optimizer.init(params)))[0]

    return jax.vmap(one)(trees)


@pytest.mark.parametrize("cls", OPTIMIZERS, ids=lambda cls: cls.__name__)
def test_an_optimizer_finds_a_minimum(cls, dtype):
    trees = {"a": np.full((2, 3), 5.0, dtype), "b": np.zeros((2,), dtype)}
    params = minimise(OPTIMIZERS[cls], trees, jnp.asarray(400))
    leaves = jax.tree_util.tree_leaves(params)
    assert sum(leaf[0].size for leaf in leaves) == 4
    for leaf in leaves:
        assert leaf.dtype == dtype
        np.testing.assert_allclose(leaf, 1.0, atol=1e-2)


@pytest.mark.parametrize(
    "cls", sorted(SCHEDULES, key=str), ids=lambda cls: cls.__name__
)
def test_a_schedule_is_positive_and_reaches_its_peak(cls, dtype):
    # Made inside: a schedule keeps the precision it was made in.
    schedule = cls(jnp.asarray(0.1, dtype))
    rates = np.asarray(
        eqx.filter_jit(lambda s, i: jax.vmap(lambda j: s(j, 100))(i))(
            schedule, jnp.arange(100)
        )
    )
    assert rates.shape == (100,)
    assert np.all((rates >= 0) & (rates <= 0.1 + 1e-6))
    assert rates.max() == pytest.approx(0.1, rel=1e-2)
    if cls is fitting.WarmupCosine:
        assert rates[-1] == pytest.approx(0.0, abs=1e-6)
        assert rates[0] < rates[1]
        assert np.all(np.diff(rates[3:]) < 0)
