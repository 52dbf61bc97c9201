"""Splines and the flow made of them, against FlowJAX and automatic derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.bijections import RationalQuadraticSpline

from softcvi.guides import SplineFlow, SplineUniform
from softcvi.guides._spline import (
    num_spline_parameters,
    spline_forward,
    spline_inverse,
)

LOW, HIGH = -2.0, 3.0
KNOTS = 4


@pytest.fixture(scope="module")
def wiggly():
    """Parameters of a spline far from the identity, and points in and outside."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=num_spline_parameters(KNOTS))
    x = np.concatenate([np.linspace(LOW, HIGH, 201), [-7.0, 9.0]])
    return raw, x


@jax.jit
def everything(raw, x):
    forward = jax.vmap(lambda v: spline_forward(raw, v, LOW, HIGH))
    y, log_derivative = forward(x)
    slope = jax.vmap(jax.grad(lambda v: spline_forward(raw, v, LOW, HIGH)[0]))(x)
    back, log_derivative_back = jax.vmap(lambda v: spline_inverse(raw, v, LOW, HIGH))(y)
    identity = jax.vmap(lambda v: spline_forward(0 * raw, v, LOW, HIGH))(x)
    return y, log_derivative, slope, back, log_derivative_back, identity


def test_a_spline_is_monotone_invertible_and_knows_its_derivative(wiggly):
    raw, x = wiggly
    with jax.enable_x64(True):
        y, log_derivative, slope, back, log_back, identity = map(
            np.asarray, (*everything(raw, x)[:5], everything(raw, x)[5][0])
        )
    assert np.all(np.diff(y[:201]) > 0)
    assert np.abs(y[:201] - x[:201]).max() > 0.3  # not the identity by accident
    np.testing.assert_array_equal(y[201:], x[201:])
    np.testing.assert_allclose([y[0], y[200]], [LOW, HIGH], atol=1e-12)
    np.testing.assert_allclose(back, x, atol=1e-10)
    # At the two ends the derivative jumps to the identity's, so look between.
    np.testing.assert_allclose(log_derivative[1:200], np.log(slope[1:200]), atol=1e-8)
    np.testing.assert_allclose(log_back[1:200], log_derivative[1:200], atol=1e-8)
    np.testing.assert_allclose(log_derivative[201:], 0.0)
    np.testing.assert_allclose(identity, x, atol=1e-12)


def test_a_spline_equals_flowjax_on_the_same_knots(wiggly):
    """Knots, heights and slopes are read off ours, and FlowJAX interpolates them."""
    raw, _ = wiggly
    with jax.enable_x64(True):
        edges = np.concatenate([[0.0], np.cumsum(_softmax(raw[:5]))])
        tops = np.concatenate([[0.0], np.cumsum(_softmax(raw[5:10]))])
        x_knots, y_knots = (LOW + (HIGH - LOW) * e for e in (edges, tops))
        y, log_derivative, *_ = everything(raw, x_knots + 1e-9)
        np.testing.assert_allclose(y[:-1], y_knots[:-1], atol=1e-6)
        theirs = paramax.unwrap(
            RationalQuadraticSpline(knots=KNOTS, interval=(LOW, HIGH))
        )
        theirs = eqx.tree_at(
            lambda s: (s.x_pos, s.y_pos, s.derivatives),
            theirs,
            (
                jnp.asarray(x_knots),
                jnp.asarray(y_knots),
                jnp.exp(everything(raw, np.clip(x_knots, LOW, HIGH))[1]),
            ),
        )
        x = np.linspace(LOW + 0.01, HIGH - 0.01, 57)
        expected = jax.jit(jax.vmap(theirs.transform_and_log_det))(x)
        y, log_derivative, *_ = everything(raw, x)
    np.testing.assert_allclose(y, expected[0], atol=1e-6)
    np.testing.assert_allclose(log_derivative, expected[1], atol=1e-5)


def _softmax(raw):
    """Widths as shares of the interval, each at least a thousandth."""
    weights = np.exp(raw) / np.sum(np.exp(raw))
    return 1e-3 + (1 - 1e-3 * raw.size) * weights


@eqx.filter_jit
def score(distribution, x):
    return jax.vmap(distribution._log_prob)(x)


def test_draws_of_a_flow_follow_a_density_that_integrates_to_one():
    flow = SplineFlow(
        2, key=jax.random.key(0), layers=2, width=5, knots=3, init_scale=2.0
    )
    # Wide, for the flow can move and scale its splines.
    axis = np.linspace(-20, 20, 2001, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    density = np.exp(np.asarray(score(flow, grid.reshape(-1, 2)), float))
    cells = density.reshape(2001, 2001) * (axis[1] - axis[0]) ** 2
    assert cells.sum() == pytest.approx(1, abs=2e-3)
    # Far from the base, so that a flow that does nothing would fail.
    gaussian = np.exp(-0.5 * np.sum(grid**2, axis=-1)) / (2 * np.pi)
    assert np.abs(density.reshape(2001, 2001) - gaussian).max() > 0.03

    keys = jax.random.split(jax.random.key(1), 4000)
    draws = np.asarray(eqx.filter_jit(lambda f: jax.vmap(f._sample)(keys))(flow))
    for cut in [(0.0, 0.0), (0.7, -0.5), (-0.5, 0.3)]:
        below = np.all(grid <= np.array(cut), axis=-1)
        exact = cells[below].sum()
        share = np.mean(np.all(draws <= np.array(cut), axis=1))
        # The last term is the width of a grid cell along the edge of the region.
        assert abs(share - exact) < 4 * np.sqrt(exact / 4000) + 0.02


def test_bounded_densities_integrate_to_one():
    bounded = SplineFlow(
        2,
        key=jax.random.key(2),
        layers=2,
        width=5,
        knots=3,
        interval=(-1.0, 2.0),
        uniform_base=True,
        init_scale=2.0,
    )
    axis = -1.0 + 3.0 * (np.arange(300, dtype=np.float32) + 0.5) / 300
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    inside = np.exp(np.asarray(score(bounded, grid), float))
    assert inside.std() > 0.05  # not the uniform by accident
    assert inside.mean() * 9 == pytest.approx(1, abs=2e-3)
    assert np.all(np.asarray(score(bounded, grid + 3.0)) == -np.inf)

    raw = np.random.default_rng(0).normal(size=16).astype(np.float32)
    line = eqx.tree_at(lambda d: d.raw, SplineUniform(-1.0, 2.0, knots=4), raw)
    density = np.exp(np.asarray(score(line, axis), float))
    assert density.std() > 0.05
    assert density.mean() * 3 == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("name", ["layers", "width", "knots"])
def test_sizes_must_be_positive(name):
    with pytest.raises(ValueError, match=f"{name}: must be at least 1"):
        SplineFlow(2, key=jax.random.key(0), **{name: 0})
