"""Draws far out whose log density is a rounding error have no weight."""

import jax
import jax.numpy as jnp
import numpy as np

import softcvi

KEY = jax.random.key(0)


def _posterior(log_prob):
    target = softcvi.DensityTarget(log_prob, jnp.zeros(2, jnp.float32))
    guide = softcvi.guides.mean_field(target, scale=1.5)
    return softcvi.Posterior(guide, target)


def rough_far_out(x):
    """Beyond 4 the sine of a number without digits, of any height."""
    errors = 300 * jnp.sin(1e10 * x[0])
    return jnp.where(x[0] > 4.0, errors, 0.0) - 0.5 * jnp.sum(x**2)


def test_errors_in_a_tail_have_no_weight():
    sample = _posterior(rough_far_out).importance(KEY, 20_000)
    draws, weights = sample.draws["value"], np.exp(sample.log_weights)
    is_far = np.asarray(draws)[:, 0] > 4.0
    # The share of the normal there is 3e-5.
    assert np.sum(is_far) > 20
    assert np.sum(weights[is_far]) < 1e-3
    assert sample.khat < 0.5
    # The error of a mean of so many draws is below 0.01.
    np.testing.assert_allclose(weights @ np.asarray(draws), 0.0, atol=0.04)
    assert abs(sample.log_evidence - np.log(2 * np.pi)) < 0.04


def test_a_narrow_mode_beside_the_guide_keeps_its_weight():
    """It is as heavy as an error, and the same at the points beside it."""

    def log_prob(x):
        narrow = 20.0 - 0.5 * jnp.sum(((x - 2.0) / 0.02) ** 2)
        return jnp.logaddexp(-0.5 * jnp.sum(x**2), narrow)

    sample = _posterior(log_prob).importance(KEY, 20_000)
    assert np.max(sample.log_p) > 15.0


def test_a_density_of_the_host_is_not_called_again():
    calls = []

    def on_host(x):
        calls.append(1)
        return np.float32(300 * np.sin(1e10 * x[0]) if x[0] > 4 else -0.5 * x @ x)

    def log_prob(x):
        like = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(on_host, like, x, vmap_method="sequential")

    posterior = _posterior(log_prob)
    calls.clear()
    posterior.importance(KEY, 500)
    assert len(calls) <= 500
