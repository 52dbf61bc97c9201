"""What holds for every guide and distribution, whatever the numbers in them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.distributions import AbstractDistribution
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softcvi import guides, targets

# Examples are the same in every run; a program is compiled in the first one.
FEW = settings(max_examples=6, deadline=None, derandomize=True, database=None)
NOISE = arrays(np.float64, 7, elements=st.floats(-0.2, 0.2))
SEED = st.integers(0, 2**31)
SMALL = {"key": jax.random.key(0), "layers": 1, "width": 3, "knots": 2}
LIKE = {"a": np.zeros(2), "b": np.zeros(())}
TWO = jnp.ones(2)


def sites(distribution, **others):
    return guides.SiteGuide({**others, "z": distribution})


def network():
    mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(1))
    label = guides.NetworkDistribution(mlp, guides.Categorical, (), (2,))
    normal = guides.DiagonalNormal(TWO, TWO)
    return sites(guides.Conditional(label, on=("b",)), b=normal)


CASES = {
    guides.Bernoulli: lambda: sites(guides.Bernoulli(TWO)),
    guides.Categorical: lambda: sites(guides.Categorical(jnp.eye(2))),
    guides.CouplingFlow: lambda: guides.coupling_flow(np.zeros(2), **SMALL),
    guides.DiagonalNormal: lambda: guides.mean_field(LIKE),
    guides.Folded: lambda: sites(guides.Folded(guides.DiagonalNormal(0.5, 1.0))),
    guides.FullRankNormal: lambda: guides.full_rank(LIKE),
    guides.FullRankStudentT: lambda: guides.full_rank_t(LIKE),
    guides.LowRankNormal: lambda: guides.low_rank(LIKE),
    guides.NetworkDistribution: network,
    guides.ScalarMixtures: lambda: guides.scalar_mixtures(LIKE),
    guides.SplineFlow: lambda: guides.spline_flow(np.zeros(2), **SMALL),
    guides.SplineUniform: lambda: sites(guides.SplineUniform(0.0, 2.0, knots=2)),
    guides.StudentT: lambda: guides.student_t(LIKE),
    guides.Whitened: lambda: guides.whitened(
        guides.mean_field(LIKE), jnp.zeros(3), jnp.eye(3)
    ),
    guides.MappedGuide: lambda: guides.MappedGuide(
        guides.mean_field(LIKE), targets.UnconstrainedSpace({"b": targets.positive()})
    ),
    guides.HierarchicalGuide: lambda: guides.hierarchical(LIKE, local=("a",)),
    guides.MixedGuide: lambda: guides.MixedGuide(
        guides.mean_field({"b": np.zeros(2)}), {"k": jnp.ones((2, 3))}
    ),
    guides.MixtureGuide: lambda: guides.mixture(2 * [guides.mean_field(LIKE)]),
    guides.ProductGuide: lambda: guides.ProductGuide(
        [guides.full_rank(np.zeros(2)), guides.mean_field(np.zeros(1))],
        [[0, 2], [1]],
        LIKE,
    ),
    guides.SiteGuide: lambda: sites(guides.StudentT(TWO), b=guides.StudentT(TWO)),
    guides.VectorGuide: lambda: guides.full_rank(LIKE, scale=2.0),
}


def moved(guide, noise):
    """With other numbers in all that is trained."""

    def is_whitened(node):
        return isinstance(node, guides.Whitened)

    def move(leaf):
        if is_whitened(leaf):  # its factor is fixed, and triangular
            return eqx.tree_at(lambda w: w.base, leaf, moved(leaf.base, noise))
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf + jnp.resize(noise, leaf.shape).astype(leaf.dtype)

    return jax.tree.map(move, guide, is_leaf=is_whitened)


def test_every_exported_class_is_here(exported):
    known = exported(guides, guides.AbstractGuide)
    assert known | exported(guides, AbstractDistribution) <= set(CASES)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_sample_and_log_prob_agree_and_a_batch_equals_single_draws(cls):
    with jax.enable_x64(True):
        made = CASES[cls]()

        def alone(noise, key):
            guide = paramax.unwrap(moved(made, noise))
            draw, log_q = guide.sample_and_log_prob(key)
            return draw, log_q, guide.sample(key), guide.log_prob(draw)

        batched = jax.jit(jax.vmap(alone, (None, 0)))
        alone = jax.jit(alone)

        @given(noise=NOISE, seeds=st.lists(SEED, min_size=3, max_size=3))
        @FEW
        def check(noise, seeds):
            keys = jnp.stack([jax.random.key(seed) for seed in seeds])
            together = batched(noise, keys)
            for i, key in enumerate(keys):
                draw, log_q, again, log_prob = one = alone(noise, key)
                np.testing.assert_allclose(log_q, log_prob, rtol=1e-5, atol=1e-5)
                for a, b in zip(*map(jax.tree.leaves, (draw, again)), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
                ith = jax.tree.map(lambda leaf, i=i: leaf[i], together)
                for a, b in zip(*map(jax.tree.leaves, (one, ith)), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)

        check()
