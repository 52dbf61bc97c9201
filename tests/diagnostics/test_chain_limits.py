"""What chains remember of their start: which mode they are in does not count."""

import numpy as np

from softcvi.diagnostics._clusters import chain_modes, clusters, factor_within
from softcvi.diagnostics._short_chains import Limit, limit_of, spread_of


def chains(rng, memory):
    """Averages of chains in two modes that forget all but their mode and a share."""
    centre = np.where(rng.uniform(size=(256, 1)) < 0.3, -20.0, 20.0)
    start = centre + rng.normal(size=(256, 2))
    later = centre + memory * (start - centre) + 0.2 * rng.normal(size=(256, 2))
    return start, later


def test_chains_that_stay_in_their_mode_may_have_forgotten_all_else():
    start, later = chains(np.random.default_rng(0), memory=0.0)
    modes = clusters(later)
    found = limit_of(later, start, modes)
    assert np.all(found.memory < 0.1)
    # As one, the chains remember everything.
    assert np.all(limit_of(later, start, np.zeros(256, int)).memory > 0.9)
    # The mass of each mode is that of the starts.
    np.testing.assert_allclose(found.value, start.mean(axis=0), atol=0.3)


def test_a_narrow_and_a_wide_mode_with_one_centre_are_two():
    """Chains of either have forgotten all but which of them they are in."""
    rng = np.random.default_rng(4)
    sd = np.where(np.arange(256) < 12, 10.0, 1.0)[:, None]
    start = sd * rng.normal(size=(256, 5))
    path = sd[:, None] * rng.normal(size=(256, 30, 5))
    mean, square = path.mean(axis=1), np.mean(path**2, axis=1)
    modes = chain_modes(mean, square)
    assert sorted(np.bincount(modes)) == [12, 244]
    found = limit_of(square, start**2, modes)
    # Each of the twelve has 30 independent values of variance 100.
    error = 12 / 256 * 100 * np.sqrt(2 / 30 / 12)
    right = np.mean(sd**2)
    np.testing.assert_allclose(found.value, right, atol=5 * error)
    # As one, the chains remember how wide they are.
    as_one = limit_of(square, start**2, 0 * modes)
    assert as_one.memory.min() > 2 * found.memory.max()


def test_chains_that_are_slow_within_their_mode_say_so():
    start, later = chains(np.random.default_rng(1), memory=0.8)
    found = limit_of(later, start, clusters(later))
    # Its error is that of a slope from 256 points.
    np.testing.assert_allclose(found.memory, 0.8, atol=0.1)


def test_the_width_within_modes_does_not_grow_with_their_distance():
    start, _ = chains(np.random.default_rng(2), memory=0.0)
    # Standard deviations are known to a twentieth from 256 points.
    np.testing.assert_allclose(factor_within(start), np.eye(2), atol=0.2)
    assert factor_within(start[start[:, 0] > 0]) is None


def test_a_variance_lost_in_its_error_is_no_evidence_and_none_at_all_is():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(100, 2))
    first = Limit(np.zeros((100, 2)), np.zeros(2))
    # Both are below zero; only the first is known so badly that it could be one.
    second = Limit(-0.5 + noise * np.array([10.0, 0.1]), np.zeros(2))
    assert np.all(second.value < 0)
    found = spread_of(first, second, np.ones(2), errors=3.0)
    np.testing.assert_array_equal(found, [1.0, 0.0])
