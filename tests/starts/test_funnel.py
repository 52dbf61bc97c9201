"""Parameters that set the scales of others are found, and taken out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts import Explore, InBestSpace, Moments
from softcvi.starts._funnel import without_funnel


def _normal(x, loc, scale):
    return -0.5 * ((x - loc) / scale) ** 2 - jnp.log(scale)


def _two_funnels(t):
    """The scale of ``x`` is set by ``a``, scale and location of ``y`` by two others."""
    return (
        _normal(t["a"], 0.0, 1.5)
        + jnp.sum(_normal(t["x"], 0.0, jnp.exp(t["a"] / 2)))
        + _normal(t["b"], 1.0, 1.0)
        + _normal(t["m"], 0.0, 2.0)
        + jnp.sum(_normal(t["y"], t["m"], jnp.exp(t["b"])))
    )


_LIKE = {
    "a": jnp.zeros(()),
    "b": jnp.zeros(()),
    "m": jnp.zeros(()),
    "x": jnp.zeros(2),
    "y": jnp.zeros(2),
}


def test_scales_and_locations_are_taken_out() -> None:
    target = softcvi.DensityTarget(_two_funnels, _LIKE)
    flat = without_funnel(target, Moments(np.zeros(7), 0.5 * np.eye(7)))
    assert flat is not None
    assert flat.space.children == (3, 4, 5, 6)
    structure = target.structure

    def log_density(u):
        return flat.log_density(structure.unravel(u))

    # A normal with independent parameters: the same Hessian everywhere.
    for point in (np.zeros(7), np.array([2.0, -1.0, 1.0, 1.0, 2.0, -1.0, 0.5])):
        hessian = jax.hessian(log_density)(jnp.asarray(point))
        deviations = 1 / np.sqrt(-np.diagonal(hessian))
        np.testing.assert_allclose(deviations[:3], [1.5, 1.0, 2.0], rtol=1e-3)
        scaled = np.asarray(hessian) * np.outer(deviations, deviations)
        np.testing.assert_allclose(scaled, -np.eye(7), atol=1e-3)


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_posteriors_without_funnel_keep_their_coordinates(kind) -> None:
    factor = np.linalg.cholesky(np.array([[1.0, 0.7], [0.7, 2.0]]))

    def log_prob(x):
        z = jnp.linalg.solve(jnp.asarray(factor), x)
        own_tail = jnp.sum(jnp.exp(x)) if kind == "skewed" else 0.0
        return -0.5 * jnp.sum(z**2) - own_tail

    target = softcvi.DensityTarget(log_prob, jnp.zeros(2))
    assert without_funnel(target, Moments(np.zeros(2), np.eye(2))) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_fit_of_a_funnel_is_right_and_trusted(seed) -> None:
    target = softcvi.DensityTarget(_two_funnels, _LIKE)
    result = softcvi.fit(jax.random.key(seed), target, steps=1000, progress=False)
    draws = result.sample(jax.random.key(9), 4000)
    for name, (mean, sd) in {"a": (0.0, 1.5), "b": (1.0, 1.0), "m": (0.0, 2.0)}.items():
        assert abs(float(jnp.mean(draws[name])) - mean) < 0.08 * sd
        assert abs(float(jnp.std(draws[name])) / sd - 1) < 0.06
    assert result.verdict.trusted


def test_the_start_moves_to_coordinates_without_funnel() -> None:
    def log_prob(t):
        return _normal(t["v"], 0.0, 2.0) + jnp.sum(
            _normal(t["x"], 0.0, jnp.exp(t["v"] / 2))
        )

    like = {"v": jnp.zeros(()), "x": jnp.zeros(3)}
    target = softcvi.DensityTarget(log_prob, like)
    report = InBestSpace(Explore()).find(jax.random.key(0), target)
    assert len(report.modes) == 1
    np.testing.assert_allclose(report.modes[0].deviations[0], 2.0, rtol=0.02)
