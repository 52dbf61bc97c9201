"""The battery of every target."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import targets


def log_prob(x, data=0.0):
    return -0.5 * jnp.sum((x["mu"] - jnp.sum(data)) ** 2) - jnp.sum(x["tau"] ** 2)


def like(dtype):
    return {"mu": jnp.zeros(2, dtype), "tau": jnp.zeros((), dtype)}


def space():
    return targets.UnconstrainedSpace({"tau": targets.positive()})


def mini_batch(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return targets.MiniBatchTarget(
            log_prob,
            log_prob,
            like(dtype),
            data=jnp.ones(6, dtype),
            batch_size=3,
            space=space(),
        )


def plate(dtype):
    return targets.PlateTarget(
        lambda shared: -(shared["tau"] ** 2),
        lambda shared, local, row: -0.5 * (local["mu"] - row) ** 2,
        like(dtype),
        local=("mu",),
        data=jnp.full(2, 3.0, dtype),
        space=space(),
    )


def rows(dtype):
    return targets.DataTarget(
        lambda x: -jnp.sum(x["tau"] ** 2),
        lambda x, centre: jnp.full(len(centre), -0.1 * jnp.sum((x["mu"] - 3) ** 2)),
        like(dtype),
        data=jnp.ones(5, dtype),
        block=2,
        space=space(),
    )


CASES = {
    targets.DensityTarget: lambda dtype: targets.DensityTarget(
        log_prob, like(dtype), space=space(), observed=jnp.ones(3, dtype)
    ),
    targets.AmortisedTarget: lambda dtype: targets.AmortisedTarget(
        log_prob, like(dtype), data=jnp.ones((6, 3), dtype), space=space()
    ),
    targets.MiniBatchTarget: mini_batch,
    targets.PlateTarget: plate,
    targets.DataTarget: rows,
    targets.ControlVariateTarget: lambda dtype: targets.ControlVariateTarget(
        rows(dtype), like(dtype), 2
    ),
}


def test_the_battery_knows_every_exported_target(exported):
    assert exported(targets, targets.AbstractTarget) == set(CASES)


@eqx.filter_jit
def program(target, keys):
    def one(key):
        particle = target.initial_particle(key)
        data = target.draw_data(key)
        if target.amortised:
            data = jax.tree_util.tree_map(lambda leaf: leaf[0], data)
        value, gradient = jax.value_and_grad(target.log_density)(particle, data)
        shown = target.describe(target.space.to_model(particle))
        return particle, value, gradient, shown

    return jax.vmap(one)(keys)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_density_gradient_and_start(cls, dtype):
    target = CASES[cls](dtype)
    particle, value, gradient, shown = program(
        target, jax.random.split(jax.random.key(0), 5)
    )
    assert target.structure.difference(targets.Structure(like(dtype))) is None
    assert {n: v.shape[1:] for n, v in particle.items()} == {"mu": (2,), "tau": ()}
    assert value.shape == (5,)
    assert value.dtype == dtype
    assert all(np.all(np.isfinite(g)) for g in gradient.values())
    np.testing.assert_allclose(shown["tau"], np.exp(particle["tau"]), rtol=1e-6)
    assert not any(jax.tree_util.tree_leaves(target.trainable()))

    # The density of the model in its own coordinates, and the Jacobian of exp.
    mu, tau = np.asarray(shown["mu"]), np.asarray(shown["tau"])
    square = np.sum((mu - 3.0) ** 2, axis=1)
    expected = -0.5 * square - tau**2
    if cls is targets.MiniBatchTarget:
        expected = 2 * expected - 0.5 * np.sum(mu**2, axis=1) - tau**2
    rounding = 1e-5 if dtype == jnp.float32 else 1e-12
    np.testing.assert_allclose(value, expected + particle["tau"], rtol=rounding)
