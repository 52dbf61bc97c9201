"""Flat blocks with no density between them are found by the program's conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import DensityTarget
from softcvi.starts import Explore
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._program_parts import inner_points, inner_starts
from softcvi.starts._support import boxes_around

CENTRES = np.array([[3.0, -40.0], [90.0, 5.0]])
HALF = np.array([[0.5, 2.0], [1.0, 0.2]])


def inside(x):
    return jnp.all(jnp.abs(x - CENTRES) < HALF, axis=1)


def by_bounds(x):
    above, below = x > CENTRES - HALF, x < CENTRES + HALF
    return jnp.where(~jnp.all(above & below, axis=1), -jnp.inf, jnp.array([1.0, 0.0]))


PROGRAMS = {
    "any": lambda x: jnp.where(jnp.any(inside(x)), 0.0, -jnp.inf),
    "either": lambda x: jnp.where(inside(x)[0] | inside(x)[1], 0.0, -jnp.inf),
    "nested": lambda x: jnp.where(
        inside(x)[0], 1.0, jnp.where(inside(x)[1], 0.0, -jnp.inf)
    ),
    "terms": lambda x: jnp.max(by_bounds(x)),
}


def density_of(log_prob):
    return as_density(DensityTarget(log_prob, jnp.zeros(2)))


@pytest.mark.parametrize("log_prob", PROGRAMS.values(), ids=PROGRAMS)
def test_a_point_inside_of_every_block_is_found(log_prob):
    density = density_of(log_prob)
    starts = np.random.default_rng(0).normal(size=(4, 2))
    with density.context():
        found = inner_points(density, Evaluator(density, 500), starts)
    z = np.abs(found[:, None] - CENTRES) / HALF
    assert np.all(np.any(np.all(z < 1, axis=2), axis=0))


_SHIFT = np.array([40.0, -7.0, 0.01, 300.0, -2.0, 5.0])


def _each(inside, height):
    return jnp.sum(jnp.where(inside, height, -jnp.inf))


def _ball(x):
    z = (x - _SHIFT) / 0.1
    return jnp.log1p(-jnp.sum(z**2))


SUPPORTS = {
    "order": lambda x: jnp.where(jnp.all(x[1:] > x[:-1]), -jnp.sum(x**2), -jnp.inf),
    "each": lambda x: _each((x > _SHIFT) & (x < _SHIFT + 0.1), -x),
    "between": lambda x: _each((x[:3] < x[3:]) & (x[3:] < _SHIFT[3]), -x[:3]),
    "undefined": _ball,
    "root": lambda x: jnp.sum(jnp.sqrt(x - 1e3)) - jnp.sum(x),
}


@pytest.mark.parametrize("log_prob", SUPPORTS.values(), ids=SUPPORTS)
def test_a_point_is_found_that_fulfils_all_conditions_at_once(log_prob):
    density = as_density(DensityTarget(log_prob, jnp.zeros(6)))
    starts = np.random.default_rng(0).normal(size=(4, 6))
    assert not any(np.isfinite(log_prob(jnp.asarray(x))) for x in starts)
    with density.context():
        found = inner_points(density, Evaluator(density, 500), starts)
    assert len(found)
    assert all(np.isfinite(log_prob(jnp.asarray(x))) for x in found)


def test_conditions_of_nothing_are_met():
    """A single number is in order."""
    target = DensityTarget(SUPPORTS["order"], jnp.zeros(1))
    report = Explore().find(jax.random.key(0), target)
    assert len(report.modes) == 1
    np.testing.assert_allclose(report.modes[0].deviations, np.sqrt(0.5), rtol=0.05)


def test_a_support_that_is_everywhere_is_not_looked_for():
    density = density_of(lambda x: jnp.where(x[0] > 1e9, -jnp.inf, -jnp.sum(x**2)))
    points = np.ones((16, 2))
    with density.context():
        found = list(inner_starts(density, Evaluator(density, 500), points, points))
    assert found == []


def test_boxes_are_as_wide_as_the_support():
    def log_density(x):
        z = np.abs(x[:, None] - CENTRES) / HALF
        return np.where(np.any(np.all(z < 1, axis=2), axis=1), -1.0, -np.inf)

    rng = np.random.default_rng(0)
    points = np.concatenate([CENTRES + 0.9 * HALF, [[0.0, 0.0]]])
    boxes = boxes_around(rng, log_density, points, 1)
    np.testing.assert_allclose(boxes.means, CENTRES, atol=0.05 * np.max(HALF))
    widths = np.sqrt(3 * np.diagonal(boxes.covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(widths, HALF, rtol=0.05)
    # The log of the mass of each.
    volumes = np.sum(np.log(2 * HALF), axis=1)
    np.testing.assert_allclose(boxes.elbos, volumes - 1.0, atol=0.2)
    assert not len(boxes_around(rng, log_density, points[2:], 1).means)


def test_blocks_many_widths_apart_are_found_and_weighed():
    target = DensityTarget(PROGRAMS["nested"], jnp.zeros(2))
    report = Explore().find(jax.random.key(0), target)
    modes = sorted(report.modes, key=lambda mode: mode.mean[0])
    assert len(modes) == 2
    for mode, centre, half in zip(modes, CENTRES, HALF, strict=True):
        assert np.all(np.abs(mode.mean - centre) < 0.3 * half)
    evidence = [mode.log_evidence for mode in modes]
    right = np.sum(np.log(2 * HALF), axis=1) + np.array([1.0, 0.0])
    np.testing.assert_allclose(evidence, right, atol=0.2)
