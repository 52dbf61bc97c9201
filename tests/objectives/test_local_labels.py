"""Hierarchies: every group has labels of its own from the same evaluations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import SoftCVI, guides
from softcvi.objectives import LocalLabels
from softcvi.targets import ModelSpace, PlateTarget, Structure

GROUPS = 6
LIKE = {"mu": np.zeros(2, np.float32), "theta": np.zeros((GROUPS, 2), np.float32)}


class Itself(softcvi.targets.AbstractTarget):
    """A guide as its own posterior, with terms up to constants."""

    guide: guides.HierarchicalGuide
    space: ModelSpace = ModelSpace()
    structure: Structure = eqx.field(static=True, default=Structure(LIKE))
    has_gradient: bool = eqx.field(static=True, default=True)

    @property
    def local_sites(self):
        return ("theta",)

    def log_density(self, particle, data=None):
        return self.guide.log_prob(particle)

    def local_terms(self, particle, data=None):
        shared, local = self.guide.log_prob_terms(particle)
        return shared + 2.0, local - 1.0


def random_guide(key):
    guide = guides.hierarchical(LIKE, local=("theta",))
    arrays, static = eqx.partition(guide, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    keys = jax.random.split(key, len(leaves))
    noisy = [
        leaf + 0.3 * jax.random.normal(k, leaf.shape, leaf.dtype)
        for leaf, k in zip(leaves, keys, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(tree, noisy), static)


def test_the_gradient_is_zero_at_the_posterior():
    guide = random_guide(jax.random.key(0))
    target = Itself(guide)
    objective = SoftCVI(4, blocks=LocalLabels())

    @eqx.filter_jit
    def gradient(guide, key):
        return eqx.filter_grad(lambda g: objective.loss(key, g, target)[0])(guide)

    found = gradient(guide, jax.random.key(1))
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(found)) < 1e-4


def test_terms_and_noise_of_the_guide_agree():
    guide = random_guide(jax.random.key(2))
    particle = guide.sample(jax.random.key(3))
    shared, local = guide.log_prob_terms(particle)
    assert local.shape == (GROUPS,)
    np.testing.assert_allclose(
        guide.log_prob(particle), shared + jnp.sum(local), rtol=1e-5
    )
    # The density by the Jacobian of the map from noise.
    noise = guide.sample_noise(jax.random.key(4))

    def vector(noise):
        return guide.structure.ravel(guide.from_noise(noise))

    _, log_det = np.linalg.slogdet(np.asarray(jax.jacobian(vector)(noise), np.float64))
    standard = -0.5 * np.sum(noise**2) - 0.5 * noise.size * np.log(2 * np.pi)
    expected = guide.log_prob(guide.from_noise(noise))
    np.testing.assert_allclose(standard - log_det, expected, rtol=1e-4)


def normal_hierarchy(groups):
    """Known variances: the posterior is one normal, given here exactly."""
    y = np.random.default_rng(0).normal(1.0, 1.5, groups).astype(np.float32)
    target = PlateTarget(
        lambda g: -0.5 * (g["mu"] / 2.0) ** 2,
        lambda g, one, y: (
            -0.5 * (one["theta"] - g["mu"]) ** 2 - 0.5 * ((y - one["theta"]) / 0.5) ** 2
        ),
        like={"mu": np.zeros((), np.float32), "theta": np.zeros(groups, np.float32)},
        local=("theta",),
        data=y,
    )
    precision = np.zeros((groups + 1, groups + 1))
    precision[0, 0] = 0.25 + groups
    precision[0, 1:] = precision[1:, 0] = -1.0
    precision[1:, 1:] = np.eye(groups) * (1 + 4)
    covariance = np.linalg.inv(precision)
    return target, covariance @ np.append(0.0, 4 * y), np.sqrt(np.diag(covariance))


@pytest.mark.slow
def test_a_hierarchy_of_normals_is_fitted_exactly():
    target, mean, sd = normal_hierarchy(40)
    result = softcvi.fit(
        jax.random.key(0),
        target,
        guides.hierarchical(target, local=("theta",)),
        objective=SoftCVI(blocks=LocalLabels()),
        steps=5000,
        start=None,
        progress=False,
    )
    draws = result.posterior.sample(jax.random.key(1), 20_000)
    found = np.concatenate([draws["mu"][:, None], draws["theta"]], axis=1)
    assert np.max(np.abs(found.mean(axis=0) - mean) / sd) < 0.15
    assert np.max(np.abs(found.std(axis=0) / sd - 1)) < 0.12


def test_what_does_not_split_is_refused():
    target, *_ = normal_hierarchy(3)
    objective = SoftCVI(blocks=LocalLabels())
    with pytest.raises(ValueError, match="blocks: LocalLabels needs a guide"):
        objective.loss(jax.random.key(0), guides.mean_field(target), target)
    plain = softcvi.DensityTarget(target.log_density, target.like)
    guide = guides.hierarchical(plain, local=("theta",))
    with pytest.raises(ValueError, match="blocks: LocalLabels needs the terms"):
        objective.loss(jax.random.key(0), guide, plain)
    with pytest.raises(ValueError, match="local: at least one site must be global"):
        guides.hierarchical({"a": jnp.zeros(3)}, local=("a",))
    like = {"m": jnp.zeros(()), "a": jnp.zeros(3), "b": jnp.zeros(2)}
    with pytest.raises(ValueError, match="local: sites need one length"):
        guides.hierarchical(like, local=("a", "b"))
