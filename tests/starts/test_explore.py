"""The default start finds what is far, what is narrow, and counts what it saw."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.diagnostics import THRESHOLDS, psis
from softcvi.starts import Explore, Moments, StartReport, suggest
from softcvi.starts._importance import Fitted, _log_mean, worth_keeping
from softcvi.starts._modes import mass_like_missed
from softcvi.starts._proposal import TMixture

KEY = jax.random.key(0)


def normals(x, observed):
    """A mixture of isotropic normals: centres, weights and standard deviations."""
    centres, weights, sds = observed
    parts = -0.5 * jnp.sum((x - centres) ** 2, axis=-1) / sds**2
    return jax.nn.logsumexp(parts + jnp.log(weights) - x.size * jnp.log(sds))


def mixture_target(centres, weights, sds):
    arrays = tuple(jnp.asarray(a, jnp.float32) for a in (centres, weights, sds))
    return softcvi.DensityTarget(
        normals, jnp.zeros(arrays[0].shape[1]), observed=arrays
    )


def target_of(log_prob, dim=2):
    return softcvi.DensityTarget(log_prob, jnp.zeros(dim))


def weights_of(report):
    evidence = np.array([mode.log_evidence for mode in report.modes])
    return np.exp(evidence - np.logaddexp.reduce(evidence))


@pytest.mark.parametrize("distance", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("dim", [2, 10])
def test_a_mode_far_from_the_one_at_the_origin_is_found(dim, distance):
    direction = np.random.default_rng(dim).normal(size=dim)
    far = distance * direction / np.linalg.norm(direction)
    target = mixture_target([np.zeros(dim), far], [0.6, 0.4], [1.0, 1.0])
    report = Explore().find(KEY, target)
    assert report.search.num_places == len(report.modes) == 2
    # Weights are known to two per cent from the draws of the start.
    np.testing.assert_allclose(weights_of(report), [0.6, 0.4], atol=0.05)
    for mode, centre in zip(report.modes, (np.zeros(dim), far), strict=True):
        np.testing.assert_allclose(mode.mean, centre, atol=0.2)
        np.testing.assert_allclose(mode.deviations, 1.0, rtol=0.15)


@pytest.mark.slow
def test_forty_normals_are_all_found():
    centres = np.random.default_rng(5).uniform(-40, 40, size=(40, 2))
    target = mixture_target(centres, np.full(40, 1 / 40), np.ones(40))
    report = Explore().find(KEY, target)
    means = np.stack([mode.mean for mode in report.modes])
    spread = np.stack([mode.deviations for mode in report.modes])
    # Normals that overlap may be one mode, which is then as wide as both.
    z = np.abs(centres[:, None] - means) / spread
    assert np.all(np.min(np.max(z, axis=-1), axis=1) < 3.0)
    assert report.search.missing_mass < 0.02
    # Each has a fortieth; parts that overlap share what they have together.
    assert weights_of(report).min() > 0.01


@pytest.mark.parametrize(("dim", "ratio"), [(2, 0.02), (5, 0.1)])
def test_a_narrow_spike_in_a_wide_slab_is_weighed_with_it(dim, ratio):
    target = mixture_target(
        [np.zeros(dim), np.full(dim, 0.5)], [0.3, 0.7], [1.0, ratio]
    )
    report = Explore().find(KEY, target)
    assert len(report.modes) == 2
    np.testing.assert_allclose(weights_of(report), [0.7, 0.3], atol=0.05)
    widths = [float(np.mean(mode.deviations)) for mode in report.modes]
    np.testing.assert_allclose(widths, [ratio, 1.0], rtol=0.15)
    assert report.search.smallest_feature < 2 * ratio


def test_a_wide_part_around_a_spike_has_no_mode_and_is_found():
    target = mixture_target([[0.0, 0.0], [0.0, 0.0]], [0.3, 0.7], [1.0, 0.02])
    report = Explore().find(KEY, target)
    np.testing.assert_allclose(weights_of(report), [0.7, 0.3], atol=0.05)


def test_a_component_that_roams_over_its_prior_keeps_the_variance():
    """A hundredth of the mass on a wide plateau has half of the variance."""
    sds = np.array([1.0, 10.0])
    weights = np.array([0.99, 0.01])
    rng = np.random.default_rng(0)

    def plateau(x):
        height = jax.scipy.stats.norm.logpdf(x[1], 0.0, jnp.asarray(sds))
        return jax.nn.logsumexp(height + jnp.log(weights)) - 0.5 * x[0] ** 2

    report = Explore().find(KEY, target_of(plateau))
    assert len(report.modes) == 2
    assert report.search.missing_mass < 0.02
    part = rng.choice(2, size=100_000, p=weights_of(report))
    means = np.stack([mode.mean for mode in report.modes])
    factors = np.stack([np.linalg.cholesky(mode.dense) for mode in report.modes])
    # The start's own mixture of t densities.
    t = rng.normal(size=(part.size, 2)) / np.sqrt(rng.chisquare(7, (part.size, 1)) / 7)
    draws = means[part] + np.einsum("nij,nj->ni", factors[part], t)
    right = np.sqrt(weights @ sds**2)
    # What the verdict of an answer allows.
    np.testing.assert_allclose(np.std(draws[:, 1]), right, rtol=1 / 3)


@pytest.mark.parametrize(
    ("dim", "width"), [(1, 0.003), (20, 0.002)], ids=["one", "twenty"]
)
def test_exponential_walls(dim, width):
    """Log-gamma variables in small units: starts are as high as exp(500)."""
    target = target_of(lambda x: jnp.sum(3 * x / width - jnp.exp(x / width)), dim)
    mode = Explore().find(KEY, target).modes[0]
    # Digamma and trigamma of 3.
    np.testing.assert_allclose(mode.mean / width, 0.923, atol=0.3)
    np.testing.assert_allclose(mode.deviations / width, 0.395**0.5, rtol=0.3)


def test_a_density_that_is_finite_nowhere_is_said_to_be():
    report = Explore().find(KEY, target_of(lambda x: jnp.nan * jnp.sum(x)))
    assert report.modes == ()
    assert "finite density" in report.description


@pytest.mark.parametrize(
    ("log_prob", "mean", "sd"),
    [
        (lambda x: -0.5 * jnp.sum((x - 1e4) ** 2), 1e4, 1.0),
        # Three times a gamma variable with shape 3, moved to 50.
        (
            lambda x: jnp.sum(
                jnp.where(x > 50, 2 * jnp.log(x - 50) - (x - 50) / 3, -jnp.inf)
            ),
            59.0,
            3 * 3**0.5,
        ),
    ],
    ids=["far", "bounded"],
)
def test_raw_units_far_from_the_origin(log_prob, mean, sd):
    mode = Explore().find(KEY, target_of(log_prob)).modes[0]
    np.testing.assert_allclose(mode.mean, mean, atol=0.3 * sd)
    np.testing.assert_allclose(mode.deviations, sd, rtol=0.3)


@pytest.mark.parametrize(
    ("log_prob", "dim"),
    [
        (lambda x: -0.5 * ((jnp.linalg.norm(x) - 20) / 0.5) ** 2, 2),
        (
            lambda x: (
                -0.5 * (x[0] / 3) ** 2
                - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0])
                - 1.5 * x[0]
            ),
            4,
        ),
        (lambda x: -0.5 * x[0] ** 2 - 0.5 * ((x[1] - 3 * x[0] ** 2) / 0.1) ** 2, 2),
    ],
    ids=["ring", "funnel", "banana"],
)
def test_bent_posteriors_are_one_place(log_prob, dim):
    report = Explore().find(KEY, target_of(log_prob, dim))
    assert report.search.num_places == len(report.modes) == 1


def test_the_ring_is_as_wide_as_it_is():
    ring = target_of(lambda x: -0.5 * ((jnp.linalg.norm(x) - 20) / 0.5) ** 2)
    mode = Explore().find(KEY, ring).modes[0]
    np.testing.assert_allclose(mode.deviations, 20 / np.sqrt(2), rtol=0.3)


def test_two_flat_blocks_without_a_gradient_that_helps():
    def blocks(x):
        inside = lambda low, high: jnp.all((x > low) & (x < high))  # noqa: E731
        return jnp.where(
            inside(-1.0, 1.0),
            0.0,
            jnp.where(inside(4.0, 6.0), jnp.log(3.0), -jnp.inf),
        )

    report = Explore().find(KEY, target_of(blocks))
    assert len(report.modes) == 2
    np.testing.assert_allclose(weights_of(report), [0.75, 0.25], atol=0.1)


def test_a_small_block_in_three_dimensions_is_met_by_broad_draws():
    """Its volume is a thousandth of what is searched."""

    def blocks(x):
        here, there = (jnp.all(jnp.abs(x - c) < 1.0) for c in (0.0, 5.0))
        return jnp.where(here | there, 0.0, -jnp.inf)

    report = Explore().find(KEY, target_of(blocks, 3))
    assert len(report.modes) == 2
    np.testing.assert_allclose(weights_of(report), [0.5, 0.5], atol=0.1)


@pytest.mark.parametrize(
    ("dim", "ratio", "is_missed"), [(2, 0.5, False), (10, 1.0, False), (10, 0.3, True)]
)
def test_narrow_places_that_were_found_tell_of_others(dim, ratio, is_missed):
    """Another place as narrow, in ten dimensions, would not have been found."""
    factors = np.stack([np.eye(dim), ratio * np.eye(dim)])
    far = np.zeros(dim)
    far[0] = 50.0
    modes = tuple(
        Moments(mean, factor**2, log_evidence=0.0)
        for mean, factor in zip((np.zeros(dim), far), factors, strict=True)
    )
    fitted = Fitted(
        modes, TMixture(np.zeros(2), np.stack([0 * far, far]), factors), 0.9, 0.7, 0.01
    )
    missed = mass_like_missed(fitted, 256)
    assert (missed > THRESHOLDS.bad_missing) == is_missed


def test_one_lucky_draw_does_not_make_the_evidence():
    ratios = np.random.default_rng(0).normal(0, 0.5, 1000)
    smoothed, _ = psis(ratios)
    plain = np.log(np.mean(np.exp(ratios)))
    # Without a large weight smoothing changes little.
    np.testing.assert_allclose(_log_mean(ratios, smoothed), plain, atol=0.02)
    ratios[0] = 12.0
    smoothed, _ = psis(ratios)
    assert _log_mean(ratios, smoothed) < np.log(np.mean(np.exp(ratios))) - 1.0


def test_the_same_key_gives_the_same_report():
    target = mixture_target([[0.0, 0.0], [9.0, 0.0]], [0.5, 0.5], [1.0, 1.0])
    one, other = (Explore().find(KEY, target) for _ in range(2))
    for a, b in zip(one.modes, other.modes, strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.covariance, b.covariance)
        assert a.log_evidence == b.log_evidence
    assert one.search == other.search


def test_qualities_that_were_not_measured_are_none():
    target = target_of(lambda x: -0.5 * jnp.sum(x**2))
    for start in (jnp.ones(2), jnp.ones((9, 2)), "prior"):
        report = softcvi.starts.as_start(start, target).find(KEY, target)
        mode = report.modes[0]
        assert (mode.khat, mode.ess_share, mode.log_evidence) == (None,) * 3
        assert report.search is None


def test_a_start_of_ones_own_is_taken():
    target = target_of(lambda x: -0.5 * jnp.sum(x**2))
    own = softcvi.starts.FromPoint(jnp.ones(2))
    assert softcvi.starts.as_start(own, target) is own
    with pytest.raises(ValueError, match="start: unknown 'nowhere'"):
        softcvi.starts.as_start("nowhere", target)


def test_coordinates_are_chosen_by_a_glimpse():
    """One batch of climbs knows the widths; without gradients there is no glimpse."""
    target = mixture_target([[3.0, -2.0]], [1.0], [0.5])
    mode = Explore().glimpse(KEY, target).modes[0]
    np.testing.assert_allclose(mode.mean, [3.0, -2.0], atol=0.1)
    np.testing.assert_allclose(mode.deviations, 0.5, rtol=0.15)
    assert softcvi.starts.FromPrior().glimpse(KEY, target) is None


def test_tails_of_different_length_do_not_hide_a_mode():
    # In its tails the log density of a logistic is a line: the farther direction has
    # so little curvature that Newton's step in it is without bounds.
    means = jnp.array(
        [
            [1.0, 15.0, -21.0, -5.0, -13.0, 17.0, 1.0, -8.0],
            [9.0, -36.0, 25.0, 12.0, -15.0, 16.0, 10.0, 8.0],
        ]
    )
    scales = jnp.array([2.0, 1.0])

    def log_prob(x):
        z = (x - means) / scales[:, None]
        heights = jax.scipy.stats.logistic.logpdf(z).sum(axis=-1)
        return jax.nn.logsumexp(heights - x.size * jnp.log(scales))

    report = Explore().find(KEY, target_of(log_prob, 8))
    found = np.array(sorted(mode.mean.tolist() for mode in report.modes))
    # Moments of importance weighted draws: the sds of the logistics are 3.6 and 1.8.
    np.testing.assert_allclose(found, means, atol=0.8)


def test_a_covariance_that_rounding_made_indefinite_is_a_start_all_the_same():
    target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    covariance = np.array([[1.0, 1.0 + 1e-12], [1.0 + 1e-12, 1.0]])
    report = StartReport(target, (Moments(np.zeros(2), covariance),))
    for suggestion in suggest(jax.random.key(0), report):
        draw = suggestion.make().sample(jax.random.key(1))
        assert np.all(np.isfinite(draw))


def test_what_is_narrower_than_rounding_is_no_place():
    means, covariances = [np.zeros(1), np.full(1, 1e9)], [np.eye(1), 1e-300 * np.eye(1)]
    modes = tuple(
        Moments(mean, covariance, log_evidence=height)
        for mean, covariance, height in zip(means, covariances, (0.0, 1e6), strict=True)
    )
    proposal = TMixture(np.zeros(2), np.stack(means), np.stack(covariances))
    fitted = Fitted(modes, proposal, 1.0, 1e6, 0.0)
    assert [mode.mean[0] for mode in worth_keeping(fitted)] == [0.0]


def test_a_density_that_overflows_beyond_tiny_distances_is_found():
    """Units from 1e-5 on: at all usual starts the log density is minus infinity."""
    units = 10.0 ** np.array([-5.0, -3.0, 0.0, 4.0])
    centres = np.array([3.0, -2.0, 4.0, 1.0]) * units

    def log_prob(x):
        return -jnp.sum(jnp.cosh((x - centres) / units))

    target = softcvi.DensityTarget(log_prob, jnp.zeros(4))
    [mode] = Explore().find(jax.random.key(0), target).modes
    assert np.all(np.abs(mode.mean - centres) < 0.1 * units)
    # One unit by the curvature, 0.855 by quadrature.
    np.testing.assert_allclose(mode.deviations, units, rtol=0.2)
