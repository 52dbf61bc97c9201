"""The battery of every negative."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import objectives

CASES = {
    objectives.TemperedProposal: objectives.TemperedProposal(0.75),
    objectives.TemperedPosterior: objectives.TemperedPosterior(0.75),
    objectives.FlatNegative: objectives.FlatNegative(),
    objectives.CustomNegative: objectives.CustomNegative(lambda x: -jnp.sum(x**2)),
}


def test_the_battery_knows_every_exported_negative(exported):
    assert exported(objectives, objectives.AbstractNegative) == set(CASES)


@eqx.filter_jit
def program(negative, log_p, log_q, values):
    def loss(log_q, log_p, values):
        particles = objectives.Particles(
            values, log_p, log_q, jax.lax.stop_gradient(log_q)
        )
        objective = objectives.SoftCVI(num_particles=4, negative=negative)
        return objective.value(particles)[0], (
            negative.log_prob(particles),
            negative.log_prob_starting(particles),
        )

    return jax.vmap(jax.value_and_grad(loss, has_aux=True))(log_q, log_p, values)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_density_and_bad_particles(cls, dtype):
    rng = np.random.default_rng(0)
    log_p, log_q = (rng.normal(size=(3, 4)).astype(dtype) for _ in range(2))
    values = rng.normal(size=(3, 4, 2)).astype(dtype)
    # Row 1 has no mass at one particle, row 2 a model error.
    log_p[1, 2], log_p[2, 2] = -np.inf, np.nan
    (loss, (log_negative, starting)), gradient = program(
        CASES[cls], log_p, log_q, values
    )

    assert log_negative.shape == starting.shape == (3, 4)
    assert log_negative.dtype == dtype
    expected = {
        objectives.TemperedProposal: 0.75 * log_q,
        objectives.TemperedPosterior: 0.75 * log_p,
        objectives.FlatNegative: 0 * log_q,
        objectives.CustomNegative: -np.sum(values**2, axis=-1),
    }[cls]
    np.testing.assert_allclose(log_negative, expected, rtol=1e-6)
    # Bad particles cost their own label, never the step.
    assert np.all(np.isfinite(loss))
    assert np.all(np.isfinite(gradient))
    assert np.all(np.any(np.asarray(gradient) != 0, axis=1))
