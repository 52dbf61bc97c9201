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


_EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _log_population(mu, log_tau, add):
    prior = -0.5 * (mu / 5) ** 2 + log_tau
    return prior - add.log1p((add.exp(log_tau) / 5) ** 2)


def _moments_of_log_tau() -> tuple[float, float]:
    """Exact: the schools' effects are integrated out, the rest is on a grid."""
    log_tau, mu = np.linspace(-12, 6, 900)[:, None], np.linspace(-15, 25, 400)
    variance = np.exp(2 * log_tau)[..., None] + _ERRORS**2
    squares = (_EFFECTS - mu[None, :, None]) ** 2 / variance
    heights = -0.5 * np.sum(squares + np.log(variance), axis=-1)
    heights += _log_population(mu, log_tau, np)
    weights = np.exp(heights - heights.max())
    weights = weights.sum(axis=1) / weights.sum()
    mean = weights @ log_tau[:, 0]
    return float(mean), float(np.sqrt(weights @ (log_tau[:, 0] - mean) ** 2))


@pytest.mark.slow
def test_centred_schools_as_a_plain_density_are_right_and_trusted() -> None:
    def log_prob(t):
        effects = _normal(t["theta"], t["mu"], jnp.exp(t["log_tau"]))
        data = _normal(_EFFECTS, t["theta"], _ERRORS)
        return _log_population(t["mu"], t["log_tau"], jnp) + jnp.sum(effects + data)

    zero = jnp.zeros(())
    like = {"log_tau": zero, "mu": zero, "theta": jnp.zeros(8)}
    target = softcvi.DensityTarget(log_prob, like)
    result = softcvi.fit(jax.random.key(0), target, steps=2000, progress=False)
    draws = np.asarray(result.sample(jax.random.key(9), 4000)["log_tau"])
    mean, sd = _moments_of_log_tau()
    assert abs(draws.mean() - mean) < 0.1 * sd
    assert abs(draws.std() / sd - 1) < 0.08
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
