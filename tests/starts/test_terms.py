"""Terms of a log density that is the log of a sum are found and climbed alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

import softcvi
from softcvi.starts import Explore
from softcvi.starts._program_parts import TermTarget, choices, terms_of

CENTRES = jnp.array([[0.0, 0.0], [5.0, 5.0], [10.0, 0.0]])
POINT = jnp.array([0.3, 0.2])


def heights(x):
    return -0.5 * jnp.sum((x - CENTRES) ** 2, axis=-1)


def target_of(log_prob):
    return softcvi.DensityTarget(log_prob, jnp.zeros(2))


def _by_hand(terms):
    top = jnp.max(terms)
    return top + jnp.log(jnp.sum(jnp.exp(terms - top)))


def _in_a_loop(terms):
    def add(total, term):
        return jnp.logaddexp(total, term), None

    return jax.lax.scan(add, jnp.asarray(-1e9, terms.dtype), terms)[0]


SHARES = jnp.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("log_prob", "term"),
    [
        (lambda x: logsumexp(heights(x)), heights),
        (
            lambda x: logsumexp(heights(x), b=SHARES),
            lambda x: heights(x) + jnp.log(SHARES),
        ),
        (
            lambda x: jnp.log(jnp.mean(jnp.exp(heights(x)))),
            lambda x: heights(x) - jnp.log(3.0),
        ),
        (
            lambda x: jnp.logaddexp(-(x[0] ** 2), -((x[1] - 3) ** 2)),
            lambda x: jnp.stack([-(x[0] ** 2), -((x[1] - 3) ** 2)]),
        ),
        (jax.jit(lambda x: logsumexp(heights(x)) - x[0]), lambda x: heights(x) - x[0]),
        (lambda x: functools.reduce(jnp.logaddexp, heights(x)), heights),
        (lambda x: jnp.log(functools.reduce(jnp.add, jnp.exp(heights(x)))), heights),
        (
            lambda x: jnp.log(SHARES @ jnp.exp(heights(x))),
            lambda x: heights(x) + jnp.log(SHARES),
        ),
        # The largest term is taken off and added again.
        (lambda x: _by_hand(heights(x)), heights),
        (lambda x: _in_a_loop(heights(x)), lambda x: jnp.append(-1e9, heights(x))),
        # One and an exponential: two normals.
        (
            lambda x: jax.nn.softplus(x[0]) - jnp.sum(x**2),
            lambda x: jnp.array([x[0], 0.0]) - jnp.sum(x**2),
        ),
        (lambda x: jnp.max(heights(x)), heights),
    ],
    ids=[
        "sum", "weighted", "mean", "two", "compiled", "one after another", "plus",
        "product", "by hand", "loop", "softplus", "largest",
    ],
)  # fmt: skip
def test_each_term_is_the_density_of_one_part(log_prob, term):
    target = target_of(log_prob)
    right = term(POINT)
    counts = np.array(terms_of(target, POINT))
    assert counts[counts > 0].tolist() == [len(right)]
    for i, value in enumerate(right):
        choice = np.where(counts > 0, i, -1)
        found = TermTarget(target, jnp.asarray(choice)).log_density(POINT)
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)
    whole = TermTarget(target, jnp.full(len(counts), -1)).log_density(POINT)
    np.testing.assert_allclose(whole, log_prob(POINT), rtol=1e-5)


@pytest.mark.parametrize(
    "log_prob",
    [
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x: -jnp.sum(x**2) - jnp.abs(x[0]) - jax.nn.softplus(x[0]),
        # The normaliser enters with a minus.
        lambda x: jax.nn.log_softmax(x)[0] - jnp.sum(x**2),
        # One sum for each row of the data.
        lambda x: jnp.sum(logsumexp(-((jnp.ones((7, 1)) - x) ** 2), axis=-1)),
    ],
    ids=["none", "minus", "softmax", "rows"],
)
def test_sums_that_are_no_mixture_of_densities_are_left(log_prob):
    assert sum(terms_of(target_of(log_prob), POINT)) == 0


def test_choices_are_every_term_alone_and_all_together_if_few():
    rng = np.random.default_rng(0)
    alone = [[0, -1, -1], [1, -1, -1], [-1, -1, 0], [-1, -1, 1], [-1, -1, 2]]
    assert len(choices(rng, (2, 0, 3), most=5)) == 10
    assert len(choices(rng, (2,) * 20, most=40)) == 40
    both = [[i, -1, j] for i in range(2) for j in range(3)]
    assert choices(rng, (2, 0, 3), most=9).tolist() == alone + both
    assert len(choices(rng, (50,), most=9)) == 9


def test_sums_within_sums_are_told_apart_far_from_all_of_them():
    """Branches that are not taken overflow there, which must not spoil slopes."""

    def log_prob(x):
        total, *others = heights(x)
        for other in others:
            gap = jnp.abs(total - other)
            total = jnp.maximum(total, other) + jnp.log1p(jnp.exp(-gap))
        return total

    target, point = target_of(log_prob), jnp.array([-3e3, 1e3])
    counts = terms_of(target, point)
    chosen = choices(np.random.default_rng(0), counts, most=128)
    slopes = [
        jax.grad(TermTarget(target, jnp.asarray(row)).log_density)(point)
        for row in chosen
    ]
    for centre in CENTRES:
        errors = np.max(np.abs(np.array(slopes) - (centre - point)), axis=1)
        assert np.min(errors) < 1e-2


@pytest.mark.parametrize("dim", [2, 10])
def test_a_narrow_mode_far_from_a_wide_one_is_found(dim):
    """Its basin is a millionth of the directions: no start from outside meets it."""
    centres = np.zeros((2, dim))
    centres[1, 0] = 20.0
    widths = np.array([1.0, 0.1])

    def log_prob(x):
        z = (x - centres) / widths[:, None]
        return logsumexp(-0.5 * jnp.sum(z**2, axis=-1) - dim * jnp.log(widths))

    target = softcvi.DensityTarget(log_prob, jnp.zeros(dim))
    report = Explore().find(jax.random.key(0), target)
    evidence = np.array([mode.log_evidence for mode in report.modes])
    assert len(evidence) == 2
    # Known to a few per cent from the draws of the start.
    np.testing.assert_allclose(evidence[0] - evidence[1], 0.0, atol=0.15)
    assert report.search.missing_mass < 0.02


def test_terms_of_a_mixture_in_numpyro():
    distributions = pytest.importorskip("numpyro.distributions")
    mixture = distributions.MixtureSameFamily(
        distributions.Categorical(SHARES),
        distributions.MultivariateNormal(CENTRES, jnp.eye(2)),
    )
    assert sum(terms_of(target_of(mixture.log_prob), POINT)) == 3
