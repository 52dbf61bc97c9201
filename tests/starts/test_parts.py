"""Independent parts of a posterior: which there are, and which only seem to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts import Moments
from softcvi.starts._parts import independent_parts

KEY = jax.random.key(0)
SIZE = 20


def wells(x):
    even, odd = x[::2], x[1::2]
    return jnp.sum(3 * even**2 - even**4 / 2 - 0.5 * (odd - even) ** 2)


def parts_of(log_prob, size=SIZE):
    return independent_parts(KEY, softcvi.DensityTarget(log_prob, jnp.zeros(size)))


def test_parts_of_one_function_are_one_kind():
    parts = parts_of(wells)
    [rows] = parts.kinds
    np.testing.assert_array_equal(rows, np.arange(SIZE).reshape(-1, 2))
    assert (parts.count, parts.largest) == (10, 2)


def test_data_make_kinds():
    centre = jnp.repeat(jnp.array([0.0, 1.0]), SIZE // 2)
    parts = parts_of(lambda x: -jnp.sum(jnp.cosh(x - centre)))
    kinds = [rows.ravel().tolist() for rows in parts.kinds]
    assert kinds == [list(range(10)), list(range(10, 20))]


def test_density_is_the_sum_of_its_parts():
    parts = parts_of(lambda x: wells(x) + jnp.sum(jnp.arange(SIZE) * jnp.sin(x)))
    assert len(parts.kinds) == 10
    particle = 0.3 * np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    each = [
        parts.one(i).log_density(particle[rows[0]])
        for i, rows in enumerate(parts.kinds)
    ]
    whole = parts.target.log_density(particle)
    joined = sum(each) - (parts.count - 1) * parts.height
    np.testing.assert_allclose(joined, whole, rtol=1e-4)


def test_alike_parts_leave_the_others_at_one_height():
    """Whichever of them is looked at, the rest of the log density is the same."""
    parts = parts_of(wells)
    values = np.array([1.5, -0.5], np.float32)
    found = []
    for row in parts.kinds[0]:
        point = parts.rest.astype(np.float32)
        point[row] = values
        found.append(float(parts.target.log_density(point)))
    np.testing.assert_allclose(found, found[0], rtol=1e-5)


def coupled_far_out(x):
    """Two parts meet only where one of them is beyond four."""
    return wells(x) - jnp.maximum(jnp.abs(x[0]) - 4.0, 0.0) ** 2 * (x[2] - 1.0) ** 2


DEPENDENT = {
    "a shared scale": lambda x: -jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - x[0] ** 2,
    "met at few points": coupled_far_out,
    "a product of all": lambda x: wells(x) - 1e-3 * jnp.sum(x) ** 2,
    "one large part": lambda x: -(jnp.sum(x[:15]) ** 2) - jnp.sum(x**2),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_is_no_product_is_left_whole(name):
    assert parts_of(DEPENDENT[name]) is None


def two_normals(x):
    """A mixture of a normal at the origin and one far away, in three directions."""
    far = jnp.zeros(SIZE).at[:3].set(60.0)
    squares = jnp.stack([jnp.sum(x**2), jnp.sum((x - far) ** 2)])
    return jax.nn.logsumexp(-0.5 * squares)


def test_a_mixture_is_no_product_though_each_component_is():
    """Near each of the modes its component is all that the density shows."""
    near = Moments(np.zeros(SIZE), np.eye(SIZE))
    far = Moments(np.repeat([60.0, 0.0], [3, SIZE - 3]), np.eye(SIZE))
    target = softcvi.DensityTarget(two_normals, jnp.zeros(SIZE))
    assert independent_parts(KEY, target, (near, far)) is None
    assert independent_parts(KEY, target, (far,)) is None


def test_few_parameters_are_left_whole():
    assert parts_of(wells, size=8) is None


def test_draws_that_meet_what_no_point_had_met():
    parts = parts_of(wells)
    target = softcvi.DensityTarget(
        lambda x: wells(x) - jnp.where(x[0] > 50.0, x[2] ** 2, 0.0), jnp.zeros(SIZE)
    )
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(64, SIZE)), rng.normal(size=(64, SIZE))
    far[:, 0] = 60.0
    seen = softcvi.starts._parts.Parts(target, parts.kinds, parts.rest, parts.height)
    assert seen.hold_at(near)
    assert not seen.hold_at(np.concatenate([near, far]))
