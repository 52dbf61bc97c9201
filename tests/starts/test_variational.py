"""Starts of hierarchies, whose joint mode is far from where their mass is."""

import jax.numpy as jnp
import numpy as np

import softcvi
from softcvi.starts import Moments
from softcvi.starts._curvature import Hessians
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._refine import FEW_ROUNDS, MANY_ROUNDS, refined
from softcvi.starts._variational import bound_of, independent_normal

_GROUPS = 60


def _hierarchy() -> softcvi.DensityTarget:
    """Non-centred groups: the density rises with the scale far beyond its mean."""
    y = np.random.default_rng(0).normal(size=_GROUPS) * np.sqrt(1.0 + 0.5**2)

    def log_prob(t):
        z, scale = t["z"], jnp.exp(t["log_scale"])
        prior = -0.5 * jnp.sum(z**2) - 0.5 * (t["log_scale"] / 3.0) ** 2
        return prior - 0.5 * jnp.sum(((y - scale * z) / 0.5) ** 2)

    like = {"log_scale": jnp.zeros(()), "z": jnp.zeros(_GROUPS)}
    return softcvi.DensityTarget(log_prob, like)


def test_the_bound_finds_the_scale_of_groups_and_a_mode_does_not() -> None:
    density = as_density(_hierarchy())
    start = np.zeros(_GROUPS + 1)
    with density.context():
        mean, scale = independent_normal(start, density)
        # The scale that groups and data were made with is one.
        assert abs(mean[0]) < 0.3
        assert np.all((scale[1:] > 0.3) & (scale[1:] < 0.7))
        found = Moments(mean, scale=scale, factor=np.zeros((mean.size, 0)))
        log_density = Evaluator(density, 64)
        # Up the ridge the density rises, and the mass falls.
        far = np.concatenate([[mean[0] + 2.0], mean[1:] * np.exp(-2.0)])
        heights = log_density(np.stack([mean, far]))
        assert heights[1] > heights[0]
        narrow = np.concatenate([scale[:1], scale[1:] * np.exp(-2.0)])
        beyond = Moments(far, scale=narrow, factor=np.zeros((mean.size, 0)))
        assert (
            bound_of(found, log_density).elbo > bound_of(beyond, log_density).elbo + 10
        )


def test_damped_steps_lead_from_independent_parameters_to_the_best_normal() -> None:
    """A level that all members share, a scale, and a slope that goes with the level."""
    size, x = 30, np.linspace(3.0, 4.0, 30)
    steps = np.random.default_rng(1).normal(size=(2, size))
    y = 2.0 - x + 0.3 * np.cumsum(steps[0]) + 0.2 * steps[1]

    def log_prob(t):
        walk = t["level"] + jnp.exp(t["log_scale"]) * jnp.cumsum(t["z"])
        away = (y - walk - t["slope"] * x) / jnp.exp(t["log_noise"])
        return (
            -0.5 * jnp.sum(away**2)
            - size * t["log_noise"]
            - 0.5 * jnp.sum(t["z"] ** 2)
            - 0.5 * (t["log_scale"] ** 2 + t["log_noise"] ** 2)
            - 0.5 * (t["level"] ** 2 + t["slope"] ** 2) / 100
        )

    names = ("level", "log_noise", "log_scale", "slope")
    like = {**{name: jnp.zeros(()) for name in names}, "z": jnp.zeros(size)}
    density = as_density(softcvi.DensityTarget(log_prob, like))
    with density.context():
        log_density = Evaluator(density, 64)
        mean, scale = independent_normal(np.zeros(size + 4), density)
        bounds = []
        for rounds in (FEW_ROUNDS, MANY_ROUNDS):
            narrow, curved = np.diag(1 / scale), Hessians(density)
            x_, factor = refined(mean, narrow, log_density, curved, most_rounds=rounds)
            inverse = np.linalg.inv(factor)
            found = Moments(x_, inverse.T @ inverse)
            bounds.append(bound_of(found, log_density))
    few, many = bounds
    assert many.elbo > few.elbo + 1
    assert many.variance < 0.1 * len(mean)


def test_the_bound_of_a_normal_is_its_log_evidence() -> None:
    target = softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum((x / jnp.arange(1.0, 5.0)) ** 2), jnp.zeros(4)
    )
    density = as_density(target)
    exact = float(np.sum(np.log(np.arange(1.0, 5.0))) + 2 * np.log(2 * np.pi))
    scale = np.arange(1.0, 5.0)
    factor = np.zeros((4, 1))
    factor[3] = np.sqrt(16.0 - 1.0)
    with density.context():
        log_density = Evaluator(density, 64)
        for mode in (
            Moments(np.zeros(4), np.diag(scale**2)),
            Moments(np.zeros(4), scale=np.array([1.0, 2.0, 3.0, 1.0]), factor=factor),
        ):
            bound = bound_of(mode, log_density)
            np.testing.assert_allclose(bound.elbo, exact, rtol=1e-6)
            np.testing.assert_allclose(bound.variance, 0.0, atol=1e-6)


def test_draws_where_the_density_overflows_are_left_out() -> None:
    """Counts with a wide normal for their log rates: gradients there are infinite."""
    target = softcvi.DensityTarget(
        lambda x: jnp.sum(3.0 * x - jnp.exp(x)), jnp.zeros(20)
    )
    density = as_density(target)
    with density.context():
        log_density = Evaluator(density, 64)
        wide = np.diag(np.where(np.arange(20) == 0, 1 / 500, 3.0))
        x, factor = refined(np.zeros(20), wide, log_density, Hessians(density))
    assert np.all(np.isfinite(x))
    assert np.all(np.isfinite(factor))
