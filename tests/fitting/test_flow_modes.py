"""A spline flow finds all four modes of the SLCP posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import guides


def slcp(theta, points):
    """Simple likelihood, complex posterior: four normal points, uniform prior.

    Mean theta_1, theta_2; scales theta_3^2, theta_4^2; correlation tanh(theta_5).
    """
    scales, rho = theta[2:4] ** 2, jnp.tanh(theta[4])
    z = (points - theta[:2]) / scales
    square = z[:, 0] ** 2 - 2 * rho * z[:, 0] * z[:, 1] + z[:, 1] ** 2
    log_det = jnp.sum(jnp.log(scales)) + 0.5 * jnp.log1p(-(rho**2))
    value = -0.5 * jnp.sum(square) / (1 - rho**2) - points.shape[0] * log_det
    return jnp.where(jnp.all(jnp.abs(theta) < 3), value, -jnp.inf)


def simulated():
    mean, scales, rho = np.array([0.7, -1.5]), np.array([1.0, 0.81]), np.tanh(0.6)
    covariance = np.outer(scales, scales) * np.array([[1, rho], [rho, 1]])
    rng = np.random.default_rng(0)
    return rng.multivariate_normal(mean, covariance, size=4).astype(np.float32)


@pytest.mark.slow
def test_a_spline_flow_puts_mass_on_all_four_modes():
    """The signs of theta_3 and theta_4 do not matter, so each mode has a quarter."""
    target = softcvi.DensityTarget(slcp, np.zeros(5, np.float32), observed=simulated())
    guide = guides.spline_flow(
        target,
        key=jax.random.key(0),
        layers=2,
        width=16,
        knots=6,
        interval=(-3.0, 3.0),
        uniform_base=True,
    )
    result = softcvi.fit(
        jax.random.key(1),
        target,
        guide,
        steps=3000,
        learning_rate=5e-3,
        progress=False,
    )
    draws = np.asarray(result.posterior.sample(jax.random.key(2), 4000)["value"])
    assert np.all(np.abs(draws) <= 3)
    signs = (draws[:, 2] > 0).astype(int) + 2 * (draws[:, 3] > 0)
    shares = np.bincount(signs, minlength=4) / 4000
    assert np.all((shares > 0.15) & (shares < 0.35)), shares
    # Between the modes, at scales of zero, the posterior has no mass.
    assert np.mean(np.abs(draws[:, 2]) < 0.2) < 0.05
