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


@pytest.mark.parametrize("cls", OPTIMIZERS, ids=lambda cls: cls.__name__)
def test_a_step_that_is_not_usable_changes_nothing(cls):
    optimizer = OPTIMIZERS[cls]
    params = jnp.array([1.0, -2.0])
    grads = jnp.array([3.0, jnp.nan])
    begun = params, optimizer.init(params)

    def after(grads, begun, usable):
        return optimizer.guarded_update(grads, begun[1], begun[0], 1, 9, usable)

    # The very first step as well, where Adam's corrections would divide by zero.
    assert eqx.tree_equal(after(grads, begun, jnp.asarray(False)), begun)
    later = after(grads.at[1].set(0.5), begun, jnp.asarray(True))
    assert not eqx.tree_equal(later, begun)
    assert eqx.tree_equal(after(grads, later, jnp.asarray(False)), later)


def test_adam_is_that_of_optax_on_clipped_gradients():
    ours = fitting.Adam(fitting.ConstantRate(0.1), clip=2.0)
    theirs = optax.chain(optax.clip_by_global_norm(2.0), optax.adam(0.1))
    mine = params = jnp.array([1.0, -2.0, 0.5])
    mine_state, state = ours.init(params), theirs.init(params)
    for step, scale in enumerate([1.0, 30.0, 0.01, -4.0]):
        grads = scale * jnp.array([0.3, -1.0, 2.0])
        mine, mine_state = ours.update(grads, mine_state, mine, step, 4)
        updates, state = theirs.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        # 1 - 0.999**count has five digits in single precision.
        np.testing.assert_allclose(mine, params, rtol=2e-5)


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
