"""What is saved comes back, whatever its class, its names and its numbers."""

import inspect
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import AbstractDistribution
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softcvi
from softcvi import Posterior, guides, targets

# Examples are the same in every run.
FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
HARD_NAMES = ["", 'quote"d', "'", "line\nbreak", "a/b", "../x", "\\", "\0", "[0]"]
HARD_NAMES += ["ß\u2028", "\x1b[31m", "İı", "__class__", "k" * 300, "<b>", "a.b"]
NAMES = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(HARD_NAMES),
    min_size=2,
    max_size=2,
    unique=True,
)
NUMBERS = st.lists(
    st.floats(width=32) | st.sampled_from([math.inf, -0.0, 1e-45]),
    min_size=1,
    max_size=5,
)
SMALL = {"key": jax.random.key(0), "layers": 1, "width": 3, "knots": 1}
TWO, FACTOR = jnp.ones(2), jnp.eye(2)
NORMAL = guides.DiagonalNormal(TWO, TWO)
POSITIVE = targets.positive()


def network():
    mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(1))
    return guides.NetworkDistribution(mlp, guides.Categorical, (), (2,))


DISTRIBUTIONS = {
    guides.Bernoulli: lambda: guides.Bernoulli(TWO),
    guides.Categorical: lambda: guides.Categorical(FACTOR),
    guides.CouplingFlow: lambda: guides.CouplingFlow(2, **SMALL),
    guides.DiagonalNormal: lambda: NORMAL,
    guides.Folded: lambda: guides.Folded(guides.DiagonalNormal(0.5, 1.0)),
    guides.FullRankNormal: lambda: guides.FullRankNormal(TWO, FACTOR),
    guides.FullRankStudentT: lambda: guides.FullRankStudentT(TWO, FACTOR),
    guides.LowRankNormal: lambda: guides.LowRankNormal(TWO, TWO, jnp.ones((2, 1))),
    guides.NetworkDistribution: network,
    guides.ScalarMixtures: lambda: guides.ScalarMixtures(FACTOR, FACTOR),
    guides.SplineFlow: lambda: guides.SplineFlow(2, **SMALL),
    guides.SplineUniform: lambda: guides.SplineUniform(0.0, 2.0, knots=2),
    guides.StudentT: lambda: guides.StudentT(TWO),
    guides.Whitened: lambda: guides.Whitened(NORMAL, TWO, FACTOR),
}


def like(names):
    return {names[0]: np.zeros((3, 2), np.float32), names[1]: np.zeros(2, np.float32)}


def sites(names):
    return guides.SiteGuide(dict.fromkeys(names, NORMAL))


GUIDES = {
    guides.MappedGuide: lambda n: guides.MappedGuide(
        guides.mean_field(like(n)), targets.UnconstrainedSpace({n[1]: POSITIVE})
    ),
    guides.HierarchicalGuide: lambda n: guides.hierarchical(like(n), local=n[:1]),
    guides.MixedGuide: lambda n: guides.MixedGuide(
        guides.mean_field({n[0]: np.zeros(2)}), {n[1]: jnp.ones((2, 3))}
    ),
    guides.MixtureGuide: lambda n: guides.mixture(2 * [guides.mean_field(like(n))]),
    guides.ProductGuide: lambda n: guides.ProductGuide(
        [guides.full_rank(np.zeros(4)) for _ in range(2)],
        [[0, 2, 4, 6], [1, 3, 5, 7]],
        like(n),
    ),
    guides.SiteGuide: sites,
    guides.VectorGuide: lambda n: guides.full_rank(like(n)),
}
SPACES = {
    targets.FunnelSpace: lambda n: targets.FunnelSpace(
        targets.ModelSpace(),
        targets.Structure(like(n)),
        (1, 2),
        jnp.ones(8),
        jnp.ones((2, 6)),
        jnp.ones((2, 6)),
    ),
    targets.ModelSpace: lambda n: targets.ModelSpace(),
    targets.UnconstrainedSpace: lambda n: targets.UnconstrainedSpace(
        {n[0]: POSITIVE, n[1]: targets.interval(-1.0, 3.0)}
    ),
}


def exported(module, base):
    found = (getattr(module, name) for name in module.__all__)
    classes = {c for c in found if inspect.isclass(c) and issubclass(c, base)}
    return {c for c in classes if not c.__name__.startswith("Abstract")}


def test_every_exported_class_is_here():
    # A conditional is part of a guide of sites, and one space stands for another's.
    assert exported(guides, AbstractDistribution) == set(DISTRIBUTIONS)
    assert exported(guides, guides.AbstractGuide) == set(GUIDES)
    spaces = exported(targets, targets.AbstractSpace)
    assert spaces == {*SPACES, targets.SpaceOfModel}


def filled(tree, numbers):
    """With other numbers in all of its arrays."""
    values = itertools.cycle(numbers)

    def fill(leaf):
        if not eqx.is_inexact_array(leaf):
            return leaf
        flat = np.fromiter(values, leaf.dtype, leaf.size)
        return jnp.asarray(flat.reshape(leaf.shape))

    return jax.tree_util.tree_map(fill, tree)


def assert_comes_back(guide, space, folder):
    posterior = Posterior(guide, space=space)
    posterior.save(folder / "fit.softcvi")
    again = softcvi.load(folder / "fit.softcvi")
    pairs = ((posterior.guide, again.guide), (posterior.space, again.space))
    for one, other in pairs:
        assert type(other) is type(one)
        one, other = (eqx.filter(tree, eqx.is_array) for tree in (one, other))
        assert jax.tree_util.tree_structure(one) == jax.tree_util.tree_structure(other)
        for a, b in zip(*map(jax.tree_util.tree_leaves, (one, other)), strict=True):
            assert a.dtype == b.dtype
            # Bit for bit: also the sign of zero, and NaN.
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert again.guide.structure.names == posterior.guide.structure.names


@pytest.mark.parametrize("cls", DISTRIBUTIONS, ids=lambda cls: cls.__name__)
def test_every_distribution_comes_back(cls, tmp_path):
    made = DISTRIBUTIONS[cls]()

    @given(names=NAMES, numbers=NUMBERS)
    @FEW
    def check(names, numbers):
        site = filled(made, numbers)
        if cls is guides.NetworkDistribution:
            site = guides.Conditional(site, on=(names[1],))
        guide = guides.SiteGuide({names[1]: NORMAL, names[0]: site})
        assert_comes_back(guide, targets.ModelSpace(), tmp_path)

    check()


@pytest.mark.parametrize("cls", GUIDES, ids=lambda cls: cls.__name__)
def test_every_guide_comes_back(cls, tmp_path):
    @given(names=NAMES, numbers=NUMBERS)
    @FEW
    def check(names, numbers):
        guide = filled(GUIDES[cls](names), numbers)
        assert_comes_back(guide, targets.ModelSpace(), tmp_path)

    check()


@pytest.mark.parametrize("cls", SPACES, ids=lambda cls: cls.__name__)
def test_every_space_comes_back(cls, tmp_path):
    @given(names=NAMES, numbers=NUMBERS)
    @FEW
    def check(names, numbers):
        space = filled(SPACES[cls](names), numbers)
        assert_comes_back(guides.mean_field(like(names)), space, tmp_path)

    check()
