"""Heights that are rounding errors count for nothing in a search."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, log_ndtr

import softcvi
from softcvi.starts import Explore
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._heights import Roundings, WithoutErrors
from softcvi.starts._modes import Ends


def heights_of(log_prob, dim=1):
    """Log densities without errors, in double precision, and without that."""
    target = softcvi.DensityTarget(log_prob, jnp.zeros(dim))
    density = as_density(target)
    evaluate = Evaluator.of(density, 100)
    roundings = Roundings(np.random.default_rng(0), evaluate)
    return WithoutErrors(evaluate, roundings), density.context()


def ends_at(*means):
    number, means = len(means), np.array(means, float)
    covariances = np.ones((number, 1, 1))
    counts, places = np.ones(number, int), np.arange(number)
    return Ends(means[:, None], covariances, np.zeros(number), counts, places)


def rough_far_out(x):
    """A normal; beyond 100 errors of a thousand, half of which agree."""
    size = 1e12 * x[0]
    errors = 1e3 * jnp.round(jnp.sin(size * (size + 1.0))) + 2e3
    return jnp.where(jnp.abs(x[0]) > 100, errors, -0.5 * x[0] ** 2)


def lost_in_others(x):
    """Shares that are drawn around (1, exp(x)): beyond 37 the one is lost in the sum.

    Then what should fall stays as high as nowhere else, and is no different beside.
    """
    a = jnp.stack([1.0, jnp.exp(x[0])])
    y = jnp.array([[20.0, 40.0], [30.0, 30.0], [40.0, 20.0]])
    rows = jnp.sum(gammaln(y + a) - gammaln(a), axis=1)
    rows += gammaln(a.sum()) - gammaln(a.sum() + y.sum(axis=1))
    return jnp.sum(rows) - 0.5 * (x[0] / 20) ** 2


@pytest.mark.parametrize("log_prob", [rough_far_out, lost_in_others])
def test_errors_above_all_known_places_are_no_density(log_prob):
    heights, context = heights_of(log_prob)
    near, far = np.linspace(-3, 3, 7)[:, None], np.linspace(120, 300, 400)[:, None]
    with context:
        expected = heights.evaluate(near)
        assert np.all(np.isfinite(heights(far)))  # nothing is known
        assert np.max(heights.evaluate(far)) > np.max(expected)
        heights.places(ends_at(0.0))
        np.testing.assert_array_equal(heights(near), expected)
        found = heights(far)
        assert np.all((found == -np.inf) | (found < np.max(expected) + 1))


def test_places_are_those_whose_height_is_no_error():
    heights, context = heights_of(lost_in_others)
    with context:
        kept = heights.places(ends_at(0.0, 1.0, 140.0, 35.0))
    np.testing.assert_array_equal(kept.means[:, 0], [0.0, 1.0, 35.0])


def test_a_place_that_is_higher_than_all_known_ones_is_kept():
    def log_prob(x):
        narrow = 30.0 - 0.5 * ((x[0] - 1e3) / 1e-6) ** 2
        return jnp.logaddexp(-0.5 * x[0] ** 2, narrow)

    heights, context = heights_of(log_prob)
    with context:
        heights.places(ends_at(0.0))
        assert heights(np.array([[1e3]])) == 30.0
        assert heights.top == 30.0


def test_the_mean_height_around_a_place_is_no_more_than_that_of_all_places():
    """Draws around it have met errors."""
    heights, context = heights_of(rough_far_out)
    ends = eqx.tree_at(lambda e: e.elbos, ends_at(0.0, 1.0), np.array([0.0, 900.0]))
    with context:
        found = heights.places(ends).elbos
    np.testing.assert_allclose(found, [0.0, -0.5 + 0.5 * np.log(2 * np.pi)])


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
    assert report.search.num_places == 1
    log_sd, log_tail, place = report.modes[0].mean  # in the order of their names
    assert abs(log_sd - np.log(150)) < 1.5
    assert abs(log_tail - np.log(300)) < 1
    assert abs(place - 1200) < 300
    assert report.search.missing_mass < 0.1


def test_a_density_of_the_host_is_compared_with_points_beside():
    """Other roundings cannot be had there, nor for a program in single precision."""

    def on_host(x):
        return np.float64(1e3 * np.sin(1e16 * x[0]) if x[0] > 100 else -0.5 * x @ x)

    def log_prob(x):
        like = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(
            lambda x: np.asarray(on_host(x), x.dtype), like, x, vmap_method="sequential"
        )

    heights, context = heights_of(log_prob)
    with context:
        heights.places(ends_at(0.0))
        found = heights(np.linspace(101, 300, 50)[:, None])
        assert np.all((found == -np.inf) | (found < 1.0))
        assert heights(np.zeros((1, 1))) == 0.0
