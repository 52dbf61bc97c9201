"""Modes that the program of the log density does not name are found all the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import DensityTarget
from softcvi.starts import Explore, Moments, StartReport, suggest
from softcvi.starts._launch import _symmetries
from softcvi.starts._modes import Ends, thinned
from softcvi.starts._scan import narrowest_on_lines, num_lines, scan_lines
from softcvi.starts._support import within_support, without_noise
from softcvi.targets import Structure

KEY = jax.random.key(0)


def hidden_sum(x, observed):
    """A mixture of t densities added up in a loop, so that no sum has terms."""

    def add(total, part):
        log_weight, centre, sd, df = part
        square = jnp.sum((x - centre) ** 2) / sd**2
        height = log_weight - x.size * jnp.log(sd)
        height -= 0.5 * (df + x.size) * jnp.log1p(square / df)
        return jnp.logaddexp(total, height), None

    return jax.lax.scan(add, jnp.asarray(-1e9, x.dtype), observed)[0]


def hidden_mixture(centres, weights, sds, df=1e6):
    centres = jnp.asarray(centres, jnp.float32)
    dfs = jnp.full(len(centres), df, jnp.float32)
    parts = jnp.log(jnp.asarray(weights)), centres, jnp.asarray(sds), dfs
    return DensityTarget(hidden_sum, jnp.zeros(centres.shape[1]), observed=parts)


def one_end(dim, sd=1.0):
    one = np.ones(1, int)
    return Ends(
        np.zeros((1, dim)), sd**2 * np.eye(dim)[None], np.zeros(1), one, 0 * one
    )


# The same shapes share their compiled programs. The last mode has heavy tails: paths
# end all over it, and used to crowd the other one out.
@pytest.mark.parametrize(
    ("distance", "ratio", "df"), [(10.0, 0.3, 1e6), (80.0, 0.4, 1e6), (30.0, 1.0, 1.0)]
)
def test_a_narrower_mode_far_from_a_wide_one_is_found(distance, ratio, df):
    direction = np.random.default_rng(3).normal(size=5)
    far = distance * direction / np.linalg.norm(direction)
    target = hidden_mixture([0 * far, far], [0.5, 0.5], [1.0, ratio], df)
    report = Explore().find(KEY, target)
    assert report.search.num_places == len(report.modes) == 2
    for centre in (0 * far, far):
        nearest = min(np.linalg.norm(mode.mean - centre) for mode in report.modes)
        assert nearest < 0.1 * distance


def test_lines_meet_a_place_of_which_paths_know_nothing():
    far = np.array([40.0, 0.0, -30.0])

    def log_density(x):
        near = -0.5 * np.sum(x**2, axis=1)
        return np.logaddexp(near, -0.5 * np.sum((x - far) ** 2, axis=1) / 0.2**2)

    rng = np.random.default_rng(0)
    found = scan_lines(rng, log_density, one_end(3), 50_000, 16)
    distances = np.linalg.norm(found - far, axis=1)
    # Its basin, seen from the first, is a fifth of the distance wide.
    assert len(found) > 0
    assert np.all(distances < 0.4 * 50.0)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_said_to_be_noticed_is(seed):
    """With a probability of 95 % by the estimate, which is for the narrowest."""
    dim, n = 4, 20_000
    rng = np.random.default_rng(seed)
    sd = 1.5 * narrowest_on_lines(n, dim)
    far = rng.normal(size=dim)
    far *= 30.0 / np.linalg.norm(far)

    def log_density(x):
        near = -0.5 * np.sum(x**2, axis=1)
        return np.logaddexp(near, -0.5 * np.sum((x - far) ** 2, axis=1) / sd**2)

    assert len(scan_lines(rng, log_density, one_end(dim), n, 16))
    assert (
        narrowest_on_lines(n, 2)
        < narrowest_on_lines(n, dim)
        < narrowest_on_lines(4 * n, 20)
    )


def test_lines_from_a_single_normal_meet_nothing():
    def log_density(x):
        return -0.5 * np.sum(x**2, axis=1) / 9.0

    rng = np.random.default_rng(0)
    assert not len(scan_lines(rng, log_density, one_end(4, 3.0), 20_000, 16))
    assert num_lines(24_000) == 1000


def test_lines_cross_a_gap_without_density():
    def log_density(x):
        inside = [np.all(np.abs(x - c) < 1, axis=1) for c in (0.0, 6.0)]
        return np.where(inside[0] | inside[1], 0.0, -np.inf)

    rng = np.random.default_rng(0)
    found = scan_lines(rng, log_density, one_end(2, 0.6), 50_000, 16)
    assert len(found) > 0
    assert np.all(np.abs(found - 6.0) < 1.0)


def test_a_crowd_of_ends_in_one_place_leaves_room_for_others():
    number = 200
    places = np.zeros(number, int)
    places[-1] = 1
    ends = Ends(
        np.arange(number, dtype=float)[:, None],
        np.ones((number, 1, 1)),
        -0.01 * np.arange(number),
        np.ones(number, int),
        places,
    )
    kept, left = thinned(ends)
    assert kept.num_places == 2
    assert len(kept.means) < number
    assert np.sum(kept.counts) == number
    assert left == 0.0


def test_places_beyond_the_most_that_are_kept_count_as_missing():
    number = 128
    ends = Ends(
        np.arange(number, dtype=float)[:, None],
        np.ones((number, 1, 1)),
        np.zeros(number),
        np.ones(number, int),
        np.arange(number),
    )
    kept, left = thinned(ends)
    assert kept.num_places == 64
    assert left == pytest.approx(0.5)


def test_images_change_signs_and_places_of_what_belongs_together():
    structure = Structure({"mean": np.zeros(2), "scale": np.zeros((2, 2))})
    rng = np.random.default_rng(0)
    point = np.arange(1.0, 7.0)
    found = {tuple(sign * point[order]) for sign, order in _symmetries(rng, structure)}
    assert tuple(-point) in found
    # The first part of both sites by its other sign.
    assert (-1.0, 2.0, -3.0, -4.0, 5.0, 6.0) in found
    # Both parts in the other order, in both sites.
    assert (2.0, 1.0, 5.0, 6.0, 3.0, 4.0) in found


def several_ends(means, sds):
    number = len(means)
    return Ends(
        np.array(means, float)[:, None],
        np.array(sds, float)[:, None, None] ** 2,
        np.zeros(number),
        np.ones(number, int),
        np.arange(number),
    )


def test_an_end_on_top_of_rounding_errors_is_no_place():
    """The difference of two gammas of 1e15 is noise, and as high as one likes."""

    def log_density(x):
        from scipy.special import gammaln

        size = np.exp(x[:, 0])
        return gammaln(3 + size) - gammaln(size) - 3 * x[:, 0] - 0.5 * x[:, 0] ** 2

    rng, eps = np.random.default_rng(0), np.finfo(float).eps
    ends = several_ends([0.5, 36.0], [1.0, 0.1])
    kept = without_noise(rng, log_density, ends, eps)
    np.testing.assert_array_equal(kept.means, [[0.5]])


def test_an_end_beside_rounding_errors_is_no_place_if_its_draws_are_on_top():
    def log_density(x):
        rough = 1e3 * np.sin(1e16 * x[:, 0])
        return np.where(x[:, 0] > 10.05, rough, -0.5 * x[:, 0] ** 2)

    rng, eps = np.random.default_rng(0), np.finfo(float).eps
    ends = several_ends([0.5, 10.0], [1.0, 0.1])
    kept = without_noise(rng, log_density, ends, eps)
    np.testing.assert_array_equal(kept.means, [[0.5]])


def test_a_normal_is_no_wider_than_the_block_it_is_in():
    def log_density(x):
        return np.where(np.abs(x[:, 0] - 2.0) < 0.5, 0.0, -np.inf)

    found = within_support(
        np.random.default_rng(0), log_density, several_ends([2.0, 2.1], [20.0, 0.2])
    )
    wide, narrow = np.sqrt(found.covariances[:, 0, 0])
    assert 0.1 < wide < 1.5
    assert narrow == pytest.approx(0.2)


def test_a_normal_is_as_wide_as_the_support_where_it_is_flat_along_one_coordinate():
    def log_density(x):
        is_inside = (x[:, 0] > 0.0) & (x[:, 0] < 10.0)
        return np.where(is_inside, -0.5 * (x[:, 1] / 0.2) ** 2, -np.inf)

    ends = Ends(
        np.array([[3.0, 0.0]]),
        np.diag([1e14, 0.04])[None],
        np.zeros(1),
        np.ones(1, int),
        np.zeros(1, int),
    )
    found = within_support(np.random.default_rng(0), log_density, ends)
    np.testing.assert_allclose(found.means, [[5.0, 0.0]], atol=0.2)
    deviations = np.sqrt(np.diagonal(found.covariances[0]))
    np.testing.assert_allclose(deviations, [10 / np.sqrt(12), 0.2], rtol=0.05)


def modes_of(departures, correlation=0.0):
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    return tuple(
        Moments(np.zeros(2), covariance, 0.1, 0.9, 0.0, departure)
        for departure in departures
    )


@pytest.mark.parametrize(
    ("departures", "kinds"),
    [
        ([0.1, 0.2, 0.3], ["normals"]),
        ([0.1, 0.2, 0.9], ["normals", "Student's t", "flow"]),
        ([0.1, 0.8, 0.9], ["Student's t", "products of t", "flow"]),
    ],
)
def test_normals_are_tried_first_where_most_of_the_mass_looks_normal(departures, kinds):
    target = DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    found = suggest(KEY, StartReport(target, modes_of(departures)))
    names = [suggestion.name for suggestion in found]
    assert names == [
        "spline flow" if kind == "flow" else f"mixture of 3 {kind}" for kind in kinds
    ]
    # A mixture that is not trusted may be a flow: bent places, or one in parts.
    assert [suggestion.is_flow for suggestion in found] == [k == "flow" for k in kinds]


def test_correlated_modes_with_heavy_tails_are_no_products():
    target = DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    found = suggest(KEY, StartReport(target, modes_of([0.1, 0.8, 0.9], 0.5)))
    assert not any("products" in suggestion.name for suggestion in found)
