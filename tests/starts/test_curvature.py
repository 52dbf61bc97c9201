"""Hessians by few products, and the matrix that they allow for thousands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts import Laplace, _curvature
from softcvi.starts._curvature import Hessians, curvature
from softcvi.starts._double import as_density
from softcvi.starts._refine import FEW_ROUNDS, MANY_ROUNDS


def _walk(x):
    """Noisy observations of an autoregression whose log scale is the last number."""
    state, log_scale = x[:-1], x[-1]
    steps = jnp.sum((state[1:] - 0.9 * state[:-1]) ** 2)
    return (
        -0.5 * steps * jnp.exp(-2 * log_scale)
        - len(state) * log_scale
        - jnp.sum(jnp.cosh(state))
        - log_scale**2
    )


def _dense(x):
    return -jnp.sum(x**4) - jnp.sum(x) ** 2


@pytest.mark.parametrize(
    ("log_prob", "most"), [(_walk, 6), (_dense, 30)], ids=["sparse", "dense"]
)
def test_hessians_are_those_by_columns(log_prob, most):
    target = softcvi.DensityTarget(log_prob, jnp.zeros(30))
    density = as_density(target)
    points = np.random.default_rng(0).normal(size=(3, 30))
    with density.context():
        hessians = Hessians(density)
        for point in points:
            found, expected = hessians.at(point), curvature(point, density)
            for got, right in zip(found, expected, strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-10, atol=1e-10)
    assert hessians.num_products(30) <= most


def test_entries_that_appear_later_are_not_missed():
    """Neighbours meet only where both are positive: at first nowhere."""

    def log_prob(x):
        meets = jnp.where((x[1:] > 0) & (x[:-1] > 0), x[1:] * x[:-1], 0.0)
        return -jnp.sum(x**2) + 0.3 * jnp.sum(meets)

    target = softcvi.DensityTarget(log_prob, jnp.zeros(20))
    density = as_density(target)
    with density.context():
        hessians = Hessians(density)
        hessians.at(-np.ones(20))
        assert hessians.num_products(20) == 2
        found = hessians.at(np.ones(20))[0]
        np.testing.assert_allclose(found, curvature(np.ones(20), density)[0])
        assert 2 < hessians.num_products(20) <= 5


def test_a_start_takes_few_products_of_a_chain_in_time(monkeypatch):
    """Newton's method by columns took some hundred for every step."""
    count = []
    products = _curvature._products

    def counted(x, vectors, density):
        count.append(len(vectors))
        return products(x, vectors, density)

    monkeypatch.setattr(_curvature, "_products", counted)
    target = softcvi.DensityTarget(_walk, jnp.zeros(300))
    report = Laplace().find(jax.random.key(0), target)
    assert report.modes[0].covariance is not None
    # By columns once; then a batch for each Hessian, of which there are at most 25 to
    # the top and 16 in each round around it, of which there are few for a mode and more
    # without one. By columns each of these takes five batches.
    assert sum(count) // 64 <= 5 + 25 + (FEW_ROUNDS + MANY_ROUNDS) * 16


def test_a_cheap_hessian_allows_a_matrix_for_more_parameters():
    target = softcvi.DensityTarget(_walk, jnp.zeros(60))
    [mode, *_] = Laplace(max_dense=40).find(jax.random.key(0), target).modes
    assert mode.covariance is not None
    [mode, *_] = Laplace(max_dense=20).find(jax.random.key(0), target).modes
    assert mode.covariance is None


def test_a_point_where_the_density_overflows_does_not_spoil_the_pattern():
    target = softcvi.DensityTarget(lambda x: -jnp.sum(jnp.exp(x)), jnp.zeros(30))
    density, far = as_density(target), np.full(30, 800.0)
    with density.context():
        hessians = Hessians(density)
        for point in (far, np.zeros(30), far, np.ones(30)):
            hessian = hessians.at(point)[0]
    assert hessians.num_products(30) == 2
    np.testing.assert_allclose(np.diagonal(hessian), -np.e, rtol=1e-12)
