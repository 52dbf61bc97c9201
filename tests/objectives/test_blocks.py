"""Blocks: exact identities, who differs in what, and what they are for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal

import softcvi
from softcvi import DensityTarget, SoftCVI, guides
from softcvi.objectives import (
    AdaptiveBlocks,
    FixedProposal,
    NoBlocks,
    PlateBlocks,
    RandomBlocks,
    SiteBlocks,
)

LIKE = {"a": np.zeros(2, np.float32), "b": np.zeros((2, 2), np.float32)}
BLOCKS = {
    "random": RandomBlocks(2, sets=3),
    "longer than the noise": RandomBlocks(50, sets=1),
    "adaptive": AdaptiveBlocks(sets=4),
    "site": SiteBlocks(sets=2),
    "plate": PlateBlocks(("a", "b"), sets=2),
}


def two_normals():
    base = guides.full_rank(LIKE)
    return guides.mixture(
        [base.matched(jnp.full(6, m), jnp.eye(6)) for m in (-1.0, 2.0)]
    )


GUIDES = {
    "mean field": lambda: guides.mean_field(LIKE),
    "low rank": lambda: guides.low_rank(LIKE, rank=2),
    "t": lambda: guides.student_t(LIKE),
    "full-rank t": lambda: guides.full_rank_t(LIKE),
    "flow": lambda: guides.spline_flow(
        LIKE, key=jax.random.key(0), layers=1, width=4, knots=2
    ),
    "mixture": two_normals,
}


@eqx.filter_jit
def gradient_at_the_posterior(objective, guide, keys):
    """The guide is the posterior: every set of particles must leave it alone."""
    posterior = guide

    def loss(guide, key):
        target = DensityTarget(lambda x: posterior.log_prob(x) + 3.0, LIKE)
        return objective.loss(key, guide, target)[0]

    return eqx.filter_vmap(lambda key: eqx.filter_grad(loss)(guide, key))(keys)


def largest(gradient):
    return max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", BLOCKS)
def test_the_gradient_is_zero_at_the_posterior_for_every_block(name):
    objective = SoftCVI(num_particles=3, blocks=BLOCKS[name])
    keys = jax.random.split(jax.random.key(0), 8)
    assert largest(gradient_at_the_posterior(objective, two_normals(), keys)) < 1e-4


@pytest.mark.parametrize("name", GUIDES)
def test_the_gradient_is_zero_at_the_posterior_for_every_guide(name):
    objective = SoftCVI(num_particles=2, blocks=RandomBlocks(2, sets=2))
    keys = jax.random.split(jax.random.key(1), 4)
    assert largest(gradient_at_the_posterior(objective, GUIDES[name](), keys)) < 1e-4


@pytest.mark.parametrize(
    "divergence",
    [softcvi.ReverseKL(), softcvi.JensenShannon(), softcvi.ChiSquared()],
    ids=lambda d: type(d).__name__,
)
def test_the_gradient_is_zero_at_the_posterior_for_every_divergence(divergence):
    objective = SoftCVI(5, divergence=divergence, blocks=RandomBlocks(1, sets=2))
    keys = jax.random.split(jax.random.key(2), 4)
    guide = guides.mean_field(LIKE)
    assert largest(gradient_at_the_posterior(objective, guide, keys)) < 1e-4


def particles_of(blocks, guide=None, k=4):
    target = DensityTarget(
        lambda x: -0.5 * jnp.sum(x["a"] ** 2) - 0.5 * jnp.sum(x["b"] ** 2), LIKE
    )
    guide = guides.mean_field(LIKE) if guide is None else guide
    particles = SoftCVI(k, blocks=blocks).draw(jax.random.key(5), guide, target)
    ravel = jax.vmap(jax.vmap(guide.structure.ravel))
    return np.asarray(ravel(particles.values)), particles


def test_particles_of_a_set_differ_in_one_block_alone():
    values, particles = particles_of(RandomBlocks(2, sets=3))
    assert particles.log_p.shape == particles.log_q.shape == (3, 4)
    differs = np.ptp(values, axis=1) > 0
    assert differs.sum(axis=1).tolist() == [2, 2, 2]
    # Spread over the ring of six: the sets of one step share nothing here.
    assert differs.sum(axis=0).tolist() == [1] * 6


def test_sites_and_plates_are_blocks():
    values, _ = particles_of(SiteBlocks(sets=2))
    differs = {tuple(row) for row in np.ptp(values, axis=1) > 0}
    assert differs == {(True,) * 2 + (False,) * 4, (False,) * 2 + (True,) * 4}
    values, _ = particles_of(PlateBlocks(("a", "b"), sets=2))
    differs = {tuple(row) for row in np.ptp(values, axis=1) > 0}
    first = (True, False, True, True, False, False)
    assert differs == {first, tuple(not x for x in first)}


def test_no_blocks_is_the_program_of_the_paper():
    target = DensityTarget(lambda x: -0.5 * jnp.sum(x**2), np.zeros(3, np.float32))
    guide, key = guides.mean_field(target, scale=2.0), jax.random.key(0)
    draws = jax.vmap(guide.sample)(jax.random.split(key, 8))
    particles = SoftCVI().draw(key, guide, target)
    np.testing.assert_array_equal(particles.values, draws)
    assert SoftCVI().num_evaluations == 8
    assert SoftCVI(blocks=RandomBlocks(2, sets=3)).num_evaluations == 24
    assert SoftCVI(blocks=NoBlocks()).num_evaluations == 8


def test_a_set_without_a_finite_density_does_not_take_the_step_down():
    def density(x):
        return jnp.where(x[0] > 0.0, -0.5 * jnp.sum(x**2), -jnp.inf)

    target = DensityTarget(density, np.zeros(3, np.float32))
    guide = guides.mean_field(target, scale=2.0)
    objective = SoftCVI(4, blocks=RandomBlocks(1, sets=8))
    keys = jax.random.split(jax.random.key(0), 20)
    loss = lambda g, key: objective.loss(key, g, target)  # noqa: E731
    gradient, info = eqx.filter_vmap(
        lambda key: eqx.filter_grad(loss, has_aux=True)(guide, key)
    )(keys)
    assert bool(jnp.all(info.usable))
    assert all(bool(jnp.all(jnp.isfinite(g))) for g in jax.tree.leaves(gradient))


def test_blocks_keep_labels_from_degenerating():
    """200 parameters off by a third of a sd: one whole particle takes all weight."""
    target = DensityTarget(lambda x: -0.5 * jnp.sum((x - 0.3) ** 2), np.zeros(200))
    guide, key = guides.mean_field(target), jax.random.key(0)
    ess = {
        name: float(SoftCVI(blocks=blocks).loss(key, guide, target)[1].label_ess)
        for name, blocks in {
            "none": NoBlocks(),
            "blocks": RandomBlocks(4, sets=8),
        }.items()
    }
    assert ess["none"] < 2.5
    assert ess["blocks"] > 6.0


def test_adaptive_blocks_count_by_their_partners():
    blocks = AdaptiveBlocks(sets=4)
    weights = blocks.weights(jnp.array([6.0, 1.0, 5.0, 7.0]), 8)
    assert weights.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert blocks.weights(jnp.ones(4), 8).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_what_cannot_work_is_refused():
    target = DensityTarget(lambda x: -jnp.sum(x**2), np.zeros(2, np.float32))
    plain = guides.VectorGuide(Normal(jnp.zeros(2)), target.like)
    with pytest.raises(ValueError, match="blocks: a VectorGuide does not make"):
        SoftCVI(blocks=RandomBlocks(2)).loss(jax.random.key(0), plain, target)
    with pytest.raises(ValueError, match="blocks: particles that share noise"):
        SoftCVI(proposal=FixedProposal(plain), blocks=RandomBlocks(2))
    for bad in (lambda: RandomBlocks(0), lambda: AdaptiveBlocks(sets=5)):
        with pytest.raises(ValueError, match=r"size|sets"):
            bad()
    with pytest.raises(ValueError, match=r"sites: \['c'\]"):
        PlateBlocks(("c",)).groups(guides.mean_field(LIKE).structure)
