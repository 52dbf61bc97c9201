"""Sums over rows: memory bounded by a block, differences right in single precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi.targets import DataTarget
from softcvi.targets._cost import affordable

ROWS = 1_000_000


def regression(rows):
    """A line through many rows, with its exact posterior in double precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    y = x @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=rows)
    precision = x.T @ x + np.eye(3)
    mean = np.linalg.solve(precision, x.T @ y)
    data = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    return jax.tree.map(jnp.asarray, data), mean, precision


def log_likelihood(b, rows):
    return -0.5 * (rows["y"] - rows["x"] @ b) ** 2


def log_prior(b):
    return -0.5 * jnp.sum(b**2)


@eqx.filter_jit
def densities(target, points):
    return jax.vmap(target.log_density)(points)


@jax.jit
def plain_densities(data, points):
    return jax.vmap(lambda b: log_prior(b) + jnp.sum(log_likelihood(b, data)))(points)


def test_differences_are_exact_in_single_precision():
    """Labels need differences of order one of a sum near half a million."""
    data, mean, precision = regression(ROWS)
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    like = np.zeros(3, np.float32)
    target = DataTarget(
        log_prior, log_likelihood, like, data=data, reference=jnp.asarray(mean, "f4")
    )
    points = mean + sd * np.random.default_rng(1).normal(size=(6, 3))
    points = points.astype(np.float32)
    gaps = points.astype(np.float64) - mean
    expected = -0.5 * np.einsum("ki,ij,kj->k", gaps, precision, gaps)
    found = np.asarray(densities(target, points), np.float64)
    error = (found - found[0]) - (expected - expected[0])
    assert np.abs(error).max() < 0.02

    rough = np.asarray(plain_densities(data, points), np.float64)
    rough = (rough - rough[0]) - (expected - expected[0])
    assert np.abs(rough).max() > 2 * np.abs(error).max()


def test_blocks_sum_to_the_whole_with_its_gradient():
    data, *_ = regression(103)
    b = jnp.array([0.3, -0.2, 0.1])

    def plain(b):
        return log_prior(b) + jnp.sum(log_likelihood(b, data))

    for block, reference in ((10, None), (7, jnp.ones(3)), (1000, None)):
        target = DataTarget(
            log_prior,
            log_likelihood,
            jnp.zeros(3),
            data=data,
            block=block,
            reference=reference,
        )
        value, gradient = jax.value_and_grad(target.log_density)(b)
        value = value + target.log_density_at_reference()
        np.testing.assert_allclose(value, plain(b), rtol=1e-5)
        np.testing.assert_allclose(gradient, jax.grad(plain)(b), rtol=1e-4)


def test_memory_is_bounded_by_the_block():
    data, *_ = regression(200_000)

    def workspace(block):
        target = DataTarget(
            log_prior, log_likelihood, jnp.zeros(3), data=data, block=block
        )
        gradient = eqx.filter_jit(
            lambda target, b: jax.vmap(jax.grad(target.log_density))(b)
        )
        compiled = gradient.lower(target, jnp.zeros((8, 3))).compile()
        return compiled.compiled.memory_analysis().temp_size_in_bytes

    assert workspace(1000) < 0.1 * workspace(200_000)


def test_sums_of_rows_and_odd_data_are_refused():
    data, *_ = regression(10)
    summed = DataTarget(log_prior, lambda b, rows: jnp.sum(b), jnp.zeros(3), data=data)
    with pytest.raises(ValueError, match="log_likelihood: must return one value per"):
        summed.log_density(jnp.zeros(3))
    odd = {"a": jnp.zeros(3), "b": jnp.zeros(4)}
    with pytest.raises(ValueError, match="data: all arrays need one leading axis"):
        DataTarget(log_prior, log_likelihood, jnp.zeros(3), data=odd)
    with pytest.raises(ValueError, match="block: must be an integer"):
        DataTarget(log_prior, log_likelihood, jnp.zeros(3), data=data, block=0)


def test_a_sample_of_the_rows_stands_for_all():
    data, mean, precision = regression(100_000)
    target = DataTarget(log_prior, log_likelihood, jnp.zeros(3), data=data)
    thinned, repeats = target.thinned()
    assert thinned.num_rows * repeats == target.num_rows
    assert thinned.num_rows < 0.1 * target.num_rows
    curvature = np.asarray(jax.hessian(thinned.log_density)(jnp.asarray(mean, "f4")))
    # As narrow as with all rows, to the error of a sample of so many.
    np.testing.assert_allclose(-np.diag(curvature), np.diag(precision), rtol=0.1)
    assert thinned.thinned() is None


def test_as_many_evaluations_as_a_budget_allows():
    data, *_ = regression(20_000)
    few, many = (
        DataTarget(log_prior, log_likelihood, jnp.zeros(3), data=rows)
        for rows in (jax.tree.map(lambda leaf: leaf[:2_000], data), data)
    )
    allowed = [affordable(t, 1e8, fewest=1, most=10_000) for t in (few, many)]
    assert 1 < allowed[1] < allowed[0] < 10_000
    assert allowed[0] == pytest.approx(10 * allowed[1], rel=0.2)
    assert affordable(many, 1.0, fewest=7, most=10) == 7


def test_rows_of_integers_have_derivatives_inside_programs():
    groups = np.arange(50) % 3
    target = DataTarget(
        lambda a: 0.0,
        lambda a, group: -0.5 * (a[group] - group) ** 2,
        jnp.zeros(3),
        data=jnp.asarray(groups),
        block=16,
    )
    inner = eqx.filter_jit(lambda target, a: target.log_density(a))
    slope = eqx.filter_jit(lambda target, a: jax.grad(lambda a: inner(target, a))(a))
    expected = np.bincount(groups) * (np.arange(3.0) - 1.0)
    np.testing.assert_allclose(slope(target, jnp.ones(3)), expected, rtol=1e-5)
