"""The battery of every distribution that the guides are made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.distributions import AbstractDistribution

from softcvi import guides

SMALL = {"layers": 2, "width": 4, "knots": 2}
CONDITION = {guides.NetworkDistribution: 2}


def whitened(dtype):
    factor = jnp.array([[2.0, 0.0], [1.0, 0.5]], dtype)
    base = guides.DiagonalNormal(jnp.zeros(2, dtype), jnp.ones(2, dtype))
    return guides.Whitened(base, jnp.ones(2, dtype), factor)


def cast(tree, dtype):
    return jax.tree_util.tree_map(
        lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, tree
    )


def split_normal(parameters):
    return guides.DiagonalNormal(parameters[:2], jax.nn.softplus(parameters[2:]))


def network(dtype):
    mlp = eqx.nn.MLP(2, 4, 5, 1, key=jax.random.key(3))
    return guides.NetworkDistribution(
        cast(mlp, dtype), split_normal, shape=(2,), cond_shape=(2,)
    )


CASES = {
    guides.DiagonalNormal: lambda t: guides.DiagonalNormal(
        jnp.array([0.5, -1.0], t), jnp.array([0.3, 2.0], t)
    ),
    guides.FullRankNormal: lambda t: guides.FullRankNormal(
        jnp.array([0.5, -1.0], t), jnp.array([[1.0, 0.6], [0.6, 2.0]], t)
    ),
    guides.FullRankStudentT: lambda t: guides.FullRankStudentT(
        jnp.array([0.5, -1.0], t), jnp.array([[1.0, 0.6], [0.6, 2.0]], t)
    ),
    guides.LowRankNormal: lambda t: guides.LowRankNormal(
        jnp.array([0.5, -1.0, 0.0], t),
        jnp.array([0.3, 2.0, 1.0], t),
        jnp.array([[1.0], [-1.0], [0.5]], t),
    ),
    guides.ScalarMixtures: lambda t: guides.ScalarMixtures(
        jnp.array([[0.5, -1.0], [2.0, 0.0]], t), jnp.full((2, 2), 0.7, t)
    ),
    guides.StudentT: lambda t: guides.StudentT(
        jnp.array([2.5, 30.0], t), jnp.array([0.5, -1.0], t), jnp.array([0.3, 2.0], t)
    ),
    guides.Folded: lambda t: guides.Folded(
        guides.DiagonalNormal(jnp.asarray(0.7, t), jnp.asarray(1.0, t))
    ),
    guides.Categorical: lambda t: guides.Categorical(
        jnp.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0]], t)
    ),
    guides.Bernoulli: lambda t: guides.Bernoulli(jnp.array([-1.0, 0.5], t)),
    guides.SplineUniform: lambda t: cast(
        eqx.tree_at(
            lambda d: d.raw,
            guides.SplineUniform(-1.0, 3.0, knots=4),
            0.5 * jax.random.normal(jax.random.key(1), (16,)),
        ),
        t,
    ),
    guides.SplineFlow: lambda t: guides.SplineFlow(
        2, key=jax.random.key(0), init_scale=1.0, dtype=t, **SMALL
    ),
    guides.CouplingFlow: lambda t: cast(
        guides.CouplingFlow(2, key=jax.random.key(0), **SMALL), t
    ),
    guides.Whitened: whitened,
    guides.NetworkDistribution: network,
}


def test_the_battery_knows_every_exported_distribution(exported):
    assert exported(guides, AbstractDistribution) == set(CASES)


@eqx.filter_jit
def program(distribution, keys, condition):
    """Everything at once, so that each case compiles once per precision."""
    d = paramax.unwrap(distribution)
    x, joint = jax.vmap(lambda k: d._sample_and_log_prob(k, condition))(keys)

    def score(wrapped):
        log_prob = paramax.unwrap(wrapped)._log_prob
        values = jax.vmap(lambda v: log_prob(v, condition))(x)
        return jnp.sum(values), values

    gradient, again = eqx.filter_grad(score, has_aux=True)(distribution)
    return x, joint, again, gradient


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_draws_densities_and_gradients(cls, dtype):
    distribution = CASES[cls](dtype)
    condition = jnp.array([0.3, -0.7], dtype) if cls in CONDITION else None
    keys = jax.random.split(jax.random.key(7), 16)
    x, joint, again, gradient = program(distribution, keys, condition)

    discrete = cls in (guides.Categorical, guides.Bernoulli)
    assert x.shape == (16, *distribution.shape)
    assert x.dtype == (jnp.int32 if discrete else dtype)
    assert joint.shape == again.shape == (16,)
    assert joint.dtype == again.dtype == dtype

    rounding = 2e-4 if dtype == jnp.float32 else 1e-9
    np.testing.assert_allclose(joint, again, atol=rounding, rtol=rounding)

    leaves = jax.tree_util.tree_leaves(gradient)
    assert leaves
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves)
    assert any(np.any(np.asarray(leaf) != 0) for leaf in leaves)
