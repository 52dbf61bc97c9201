"""Coordinates relative to parameters that set scales."""

import jax
import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.targets import FunnelSpace, ModelSpace, Structure
from softcvi.targets._funnel import through_funnel

_LIKE = {"v": jnp.zeros(()), "x": jnp.zeros(2)}


def _space() -> FunnelSpace:
    return FunnelSpace(
        ModelSpace(),
        Structure(_LIKE),
        (1, 2),
        jnp.array([0.5, 1.0, -1.0]),
        jnp.array([[0.3], [-0.2]]),
        jnp.array([[0.5], [1.0]]),
    )


def _target() -> softcvi.DensityTarget:
    def log_prob(t):
        scale = jnp.exp(t["v"] / 2)
        return -0.5 * t["v"] ** 2 - 0.5 * jnp.sum((t["x"] / scale) ** 2) - t["v"]

    return softcvi.DensityTarget(log_prob, _LIKE)


def test_extreme_scales_stay_finite() -> None:
    u = {"v": jnp.array(500.0), "x": jnp.ones(2)}
    x, log_det = _space().to_model_and_log_det(u)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in (x["x"], log_det))


def test_a_normal_prior_stays_one_where_its_values_are_rounded() -> None:
    # At a scale of exp(-30) the children are rounded to their locations.
    target = through_funnel(_target_with_location(), _space_with_location())
    at = [{"v": jnp.array(-30.0), "x": jnp.array([z, 0.0])} for z in (0.0, 3.0)]
    at_zero, at_three = (float(target.log_density(u)) for u in at)
    np.testing.assert_allclose(at_zero - at_three, 4.5, rtol=1e-4)


def _target_with_location() -> softcvi.DensityTarget:
    def log_prob(t):
        z = (t["x"] - 7.0) / jnp.exp(t["v"])
        return -0.5 * t["v"] ** 2 - 0.5 * jnp.sum(z**2) - 2 * t["v"]

    return softcvi.DensityTarget(log_prob, _LIKE)


def _space_with_location() -> FunnelSpace:
    centre, slopes = jnp.array([0.0, 7.0, 7.0]), jnp.ones((2, 1))
    structure = Structure(_LIKE)
    return FunnelSpace(ModelSpace(), structure, (1, 2), centre, 0 * slopes, slopes)


def test_a_posterior_in_these_coordinates_is_stored(tmp_path) -> None:
    target = through_funnel(_target(), _space())
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    posterior.save(tmp_path / "fit.softcvi")
    draws = posterior.sample(jax.random.key(0), 50)
    for given in (None, _target()):
        again = softcvi.load(tmp_path / "fit.softcvi", target=given)
        np.testing.assert_array_equal(
            again.sample(jax.random.key(0), 50)["x"], draws["x"]
        )
    weights = again.importance(jax.random.key(0), 50).log_weights
    expected = posterior.importance(jax.random.key(0), 50).log_weights
    np.testing.assert_allclose(weights, expected)
