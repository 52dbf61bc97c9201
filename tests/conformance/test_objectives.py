"""The battery of every objective."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import DensityTarget, guides, objectives

CASES = {
    objectives.SoftCVI: objectives.SoftCVI(num_particles=4),
    objectives.ELBO: objectives.ELBO(num_particles=4, stick_the_landing=True),
    objectives.SNISForwardKL: objectives.SNISForwardKL(num_particles=4),
    objectives.WithModelTerm: objectives.WithModelTerm(
        objectives.SoftCVI(num_particles=4)
    ),
}


class Model(eqx.Module):
    """A density with a parameter of its own: nothing below zero in the first scalar."""

    centre: jax.Array

    def __call__(self, x):
        value = -0.5 * jnp.sum((x - self.centre) ** 2)
        return jnp.where(x[0] > 0, value, -jnp.inf)


def test_the_battery_knows_every_exported_objective(exported):
    assert exported(objectives, objectives.AbstractObjective) == set(CASES)


@eqx.filter_jit
def program(objective, guide, target, keys):
    def loss(parts, key):
        guide, target = parts
        return objective.loss(key, paramax.unwrap(guide), target, starting=False)

    def one(key):
        value, info = loss((guide, target), key)
        starting = objective.loss(
            key, paramax.unwrap(guide), target, starting=jnp.asarray(True)
        )
        gradient = eqx.filter_grad(loss, has_aux=True)((guide, target), key)[0]
        return value, info, starting, gradient

    return jax.vmap(one)(keys)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_losses_reports_and_gradients(cls, dtype):
    objective = CASES[cls]
    target = DensityTarget(Model(jnp.ones(2, dtype)), np.zeros(2, dtype))
    # Far enough inside that no draw falls on the empty half.
    normal = guides.DiagonalNormal(
        jnp.array([5.0, 0.0], dtype), jnp.array([0.5, 1.0], dtype)
    )
    guide = guides.VectorGuide(normal, np.zeros(2, dtype))
    keys = jax.random.split(jax.random.key(0), 8)
    value, info, (starting, _), gradient = program(objective, guide, target, keys)

    assert objective.num_particles == 4
    for number in (value, starting, info.excess, info.label_ess, info.elbo):
        assert number.shape == (8,)
        assert number.dtype == dtype
        assert np.all(np.isfinite(number))
    assert np.all(np.asarray(info.excess) > 0)
    assert np.all((np.asarray(info.label_ess) >= 1) & (np.asarray(info.label_ess) <= 4))
    assert np.all(np.asarray(info.num_bad) == 0)
    assert np.all(info.usable)

    guide_gradient, target_gradient = (
        [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(part)]
        for part in gradient
    )
    assert all(np.all(np.isfinite(leaf)) for leaf in guide_gradient)
    assert all(np.any(leaf != 0) for leaf in guide_gradient)
    model_moves = any(np.any(leaf != 0) for leaf in target_gradient)
    assert model_moves == (objective.trains_model or objective.needs_gradient)
