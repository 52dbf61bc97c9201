"""Heights that are rounding errors count for nothing in a search."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

import softcvi
from softcvi.starts import Explore
from softcvi.starts._heights import WithoutErrors

EPS = np.finfo(float).eps


def rough_far_out(x):
    """A normal; beyond 100 errors of a thousand, half of which agree."""
    errors = 1e3 * np.round(np.sin(1e16 * x[:, 0])) + 2e3
    return np.where(np.abs(x[:, 0]) > 100, errors, -0.5 * x[:, 0] ** 2)


def test_errors_above_all_known_places_are_no_density():
    heights = WithoutErrors(np.random.default_rng(0), rough_far_out, EPS)
    x = np.concatenate([np.linspace(-3, 3, 7), np.linspace(101, 300, 400)])[:, None]
    np.testing.assert_array_equal(heights(x), rough_far_out(x))  # nothing is known
    heights.know(np.zeros((1, 1)))
    found = heights(x)
    np.testing.assert_array_equal(found[:7], rough_far_out(x[:7]))
    assert np.all(found[7:] == -np.inf)
    assert heights.top == 0.0


def test_a_place_that_is_higher_than_all_known_ones_is_kept():
    def log_density(x):
        narrow = 30.0 - 0.5 * ((x[:, 0] - 1e3) / 1e-6) ** 2
        return np.logaddexp(-0.5 * x[:, 0] ** 2, narrow)

    heights = WithoutErrors(np.random.default_rng(0), log_density, EPS)
    heights.know(np.zeros((1, 1)))
    assert heights(np.array([[1e3]])) == 30.0
    assert heights.top == 30.0


def test_a_log_density_without_digits_for_nats_is_no_density():
    heights = WithoutErrors(np.random.default_rng(0), lambda x: 1e18 * x[:, 0], EPS)
    heights.know(np.array([[1e-18]]))
    assert heights(np.array([[1.0]])) == -np.inf


def test_a_posterior_is_found_beside_rounding_errors_of_any_height():
    """Times as a normal and an exponential part, whose tail is a small difference.

    Where one part vanishes, the squares of the ratio of their scales cancel.
    """
    rng = np.random.default_rng(3)
    y = 300 * (rng.normal(4, 0.5, 40) + rng.exponential(1.0, 40))

    def log_density(theta):
        sd, tail = jnp.exp(theta["log_sd"]), jnp.exp(theta["log_tail"])
        rest = y.astype("float32") - theta["place"]
        rows = 0.5 * (sd / tail) ** 2 - rest / tail - theta["log_tail"]
        rows += log_ndtr(rest / sd - sd / tail)
        prior = ((theta["place"] - 1200) / 900) ** 2
        prior += ((theta["log_sd"] - 5) / 0.7) ** 2
        prior += ((theta["log_tail"] - 6) / 0.7) ** 2
        return jnp.sum(rows) - 0.5 * prior

    names = ("place", "log_sd", "log_tail")
    target = softcvi.DensityTarget(log_density, dict.fromkeys(names, jnp.float32(0)))
    report = Explore().find(jax.random.key(0), target)
    assert len(report.modes) == 1
    log_sd, log_tail, place = report.modes[0].mean  # in the order of their names
    assert abs(log_sd - np.log(150)) < 1.5
    assert abs(log_tail - np.log(300)) < 1
    assert abs(place - 1200) < 300
    assert report.search.missing_mass < 0.1
