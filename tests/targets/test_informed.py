"""Coordinates between centred and non-centred ones."""

import jax.numpy as jnp
import numpy as np

from softcvi.targets import Informed

ERROR = np.array([0.2, 1.0, 30.0])
MEASURED = np.array([-1.0, 4.0, 2.0])


def test_members_of_a_normal_hierarchy_are_standard_normal_given_any_parents():
    location, scale = 0.7, 1.3
    spread = 1 / np.sqrt(1 + scale**2 / ERROR**2)
    value = (1 - spread**2) * (MEASURED - location) / scale
    data = Informed.of(value, spread, location, scale)
    # The last says next to nothing, and counts as nothing.
    assert data.precision[2] == 0.0
    for location, scale in ((0.0, 0.01), (3.0, 1.0), (-5.0, 40.0)):
        precision = scale**-2 + ERROR**-2
        mean = (location / scale**2 + MEASURED / ERROR**2) / precision
        found = data.given(location, scale)
        np.testing.assert_allclose(found[0][:2], mean[:2], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[1][:2], precision[:2] ** -0.5, rtol=1e-4)
        u = jnp.array([0.5, -1.0, 2.0])
        z, log_det = data.by_prior(u, location, scale)
        value = found[0] + found[1] * u
        np.testing.assert_allclose(location + scale * z, value, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(log_det, np.log(found[1] / scale), atol=1e-4)
        np.testing.assert_allclose([found[0][2], found[1][2]], [location, scale])


def test_nothing_is_known_of_what_was_not_found():
    ones = np.ones(2)
    assert Informed.of(ones, ones, ones, ones) is None
    assert Informed.of(np.full(2, np.nan), 0.5 * ones, ones, ones) is None
    part = Informed.of(ones, np.array([0.5, 2.0]), 0.0, 1.0)
    np.testing.assert_allclose(part.precision, [3.0, 0.0])


def test_data_may_tell_only_the_difference_from_the_location():
    value, spread, scale = np.array([0.5, -1.0]), np.array([0.3, 0.6]), 0.7
    data = Informed.of(value, spread, 2.0, scale, is_relative=True)
    level = np.array([0.0, 100.0])[:, None]
    location, width = data.given(level, scale)
    # Wherever the level is, what was found is in the middle, by the same width.
    np.testing.assert_allclose((location - level) / scale, [value] * 2, rtol=1e-4)
    np.testing.assert_allclose(width / scale, spread, rtol=1e-5)
    z, _ = data.by_prior(jnp.zeros(2), 100.0, scale)
    np.testing.assert_allclose(z, value, rtol=1e-5)
