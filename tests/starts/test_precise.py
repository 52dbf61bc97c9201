"""Log densities that single precision rounds too much are computed in double."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.diagnostics._precision import rounding_at
from softcvi.starts import PreciseTarget

X = np.linspace(0.0, 1.0, 30).astype(np.float32)
Y = np.sin(6 * X)


def gaussian_process(x):
    """Amplitude, length and noise of a process whose covariance is nearly singular."""
    scaled = (X[:, None] - X[None]) / jnp.exp(x[1])
    covariance = jnp.exp(x[0]) * jnp.exp(-0.5 * scaled**2)
    noise = 1e-10 + jnp.exp(x[2])
    factor = jnp.linalg.cholesky(covariance + noise * jnp.eye(len(X)))
    white = jax.scipy.linalg.solve_triangular(factor, Y, lower=True)
    height = -0.5 * white @ white - jnp.sum(jnp.log(jnp.diagonal(factor)))
    return height - 0.5 * jnp.sum((x - jnp.array([0.0, -1.0, -12.0])) ** 2)


def on_a_hill(x):
    return 1e9 - 0.5 * jnp.sum((x - 1.0) ** 2)


@pytest.fixture(autouse=True)
def _single_precision():
    with softcvi._compile.enable_x64(False):
        yield


POINTS = np.array([[0.0, -1.0, -12.0], [0.1, -0.9, -11.0]], np.float32)


def test_values_and_derivatives_are_those_of_double_precision():
    target = softcvi.DensityTarget(gaussian_process, jnp.zeros(3, jnp.float32))
    precise = PreciseTarget(target, 130.0)

    @jax.jit
    def program(points):
        value = jax.vmap(jax.value_and_grad(precise.log_density))(points)
        return value, jax.vmap(jax.hessian(precise.log_density))(points)

    (values, gradients), hessians = program(jnp.asarray(POINTS))
    rough = jax.jit(jax.vmap(target.log_density))(jnp.asarray(POINTS))
    with softcvi._compile.enable_x64(True):
        exact = [jnp.asarray(x, jnp.float64) for x in POINTS]
        true = np.array([gaussian_process(x) for x in exact])
        slopes = np.stack([jax.grad(gaussian_process)(x) for x in exact])
        bends = np.stack([jax.hessian(gaussian_process)(x) for x in exact])
    assert values.dtype == jnp.float32
    np.testing.assert_allclose(values, true - 130.0, atol=1e-4)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-4)
    np.testing.assert_allclose(hessians, bends, rtol=1e-3, atol=1e-3)
    assert np.abs(rough - true).max() > 0.03  # what it is for


@pytest.mark.slow
def test_a_fit_in_single_precision_is_right_on_a_hill_of_a_billion():
    like = jnp.zeros(2, jnp.float32)
    target = softcvi.DensityTarget(on_a_hill, like)
    result = softcvi.fit(jax.random.key(0), target, steps=200, progress=False)
    assert isinstance(result.posterior.target, PreciseTarget)
    assert isinstance(result.posterior.target.unwrapped, softcvi.DensityTarget)
    assert result.verdict.trusted, result.verdict
    assert "double precision" in result.choices["start"]
    assert result.importance.log_evidence == pytest.approx(1e9 + np.log(2 * np.pi))
    draws = np.asarray(result.sample(jax.random.key(1), 4000)["value"], np.float64)
    # Monte Carlo errors of 4,000 draws: 0.016 for means, 1.1 % for sds.
    np.testing.assert_allclose(draws.mean(axis=0), 1.0, atol=0.07)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, rtol=0.05)
    assert jax.tree.leaves(result.posterior.guide)[0].dtype == jnp.float32


def test_a_target_that_single_precision_holds_is_left_alone():
    target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2, "f4"))
    start = softcvi.starts.InBestSpace(softcvi.starts.Explore())
    report = start.find(jax.random.key(0), target)
    assert report.target is target
    assert rounding_at(jax.random.key(0), target, np.eye(2)) < 1e-5


@pytest.mark.parametrize(
    ("dtype", "spacing"), [(jnp.bfloat16, 2.0), (jnp.float16, 0.25)]
)
def test_a_model_that_computes_in_fewer_digits_than_it_returns_is_seen(dtype, spacing):
    """Its values are constant on short lines, which looks like no rounding at all."""

    def coarse(x):
        return (300.0 - 0.5 * jnp.sum(x**2)).astype(dtype).astype(jnp.float32)

    like = jnp.zeros(3, jnp.float32)
    draws = np.random.default_rng(0).normal(size=(100, 3))
    found = rounding_at(
        jax.random.key(0), softcvi.DensityTarget(coarse, like), 3 * draws
    )
    assert found == pytest.approx(spacing / np.sqrt(12), rel=0.3)
    # Two heights are two heights.
    steps = softcvi.DensityTarget(lambda x: jnp.where(x[0] > 0, 300.0, 0.0), like)
    assert rounding_at(jax.random.key(0), steps, draws) < 1e-4
