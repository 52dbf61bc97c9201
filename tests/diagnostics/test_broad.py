"""Broad draws show what an answer leaves out, and nothing where it is right."""

import numpy as np

from softcvi.diagnostics import BroadCheck, BroadMoments, Evidence, Kind, judge


def weighted_draws(rng, n=8_000):
    """One per cent of the mass 20 away, met by a tenth of the draws."""
    far = rng.uniform(size=n) < 0.1
    draws = rng.normal(size=(n, 2)) + np.where(far[:, None], 20.0, 0.0)
    return draws, np.where(far, 0.1, 1.1)


def test_a_small_mode_far_out_counts_by_its_variance():
    rng = np.random.default_rng(0)
    broad = BroadMoments.of(*weighted_draws(rng))
    np.testing.assert_allclose(broad.deviations, np.sqrt(1 + 0.0099 * 400), rtol=0.05)
    answer = BroadMoments.of(rng.normal(size=(4000, 2)))
    check = broad.compared(answer)
    assert check.spread < 0.6
    assert not judge(Evidence(broad=check)).trusted
    same = broad.compared(BroadMoments.of(*weighted_draws(rng)))
    np.testing.assert_allclose([same.shift, same.spread], [0.0, 1.0], atol=0.1)


def test_few_effective_draws_say_nothing():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(1000, 2))
    weights = np.where(np.arange(1000) < 50, 1.0, 1e-9)
    answer = BroadMoments.of(3 * rng.normal(size=(4000, 2)))
    assert BroadMoments.of(draws, weights).compared(answer) is None


def test_a_moved_mean_counts():
    assert judge(Evidence(broad=BroadCheck(0.3, 1.0))).level == "caution"
    assert judge(Evidence(broad=BroadCheck(0.5, 1.0))).level == "not trusted"
    assert "further out" in judge(Evidence(broad=BroadCheck(0.5, 1.0))).reasons[0]


def test_a_much_smaller_deviation_counts_though_broad_draws_know_theirs_roughly():
    one, none = np.ones(1), np.zeros(1)
    broad = BroadMoments(none, one, 0.13 * one)

    def kinds(deviation):
        check = broad.compared(BroadMoments(none, deviation * one, 0.05 * one))
        return [finding.kind for finding in judge(Evidence(broad=check)).findings]

    assert Kind.BROAD_DRAWS in kinds(0.63)
    assert Kind.BROAD_DRAWS not in kinds(0.8)


def test_a_tail_beyond_the_reach_of_broad_draws_makes_no_answer_too_wide():
    rng = np.random.default_rng(0)
    # One in twenty lies on a long tail that the broad draws have not followed.
    tail = np.where(rng.uniform(size=8000) < 0.05, rng.exponential(3.0, 8000), 0.0)
    answer = (rng.normal(size=8000) - tail)[:, None]
    broad = BroadMoments.of(np.clip(rng.normal(size=(600, 1)), -2.5, None))
    assert broad.compared(BroadMoments.of(answer)).spread > 1.25
    check = broad.compared(BroadMoments.of(answer, beside=broad))
    assert check.spread < 1.1
    # Too much of the mass in a place that is there, or none of it, still count.
    draws, weights = weighted_draws(rng)
    two = BroadMoments.of(draws, weights)
    half = BroadMoments.of(draws, np.where(weights < 1, 9.0, 1.0), beside=two)
    assert two.compared(half).spread > 1.5
    none = BroadMoments.of(rng.normal(size=(4000, 2)), beside=two)
    assert two.compared(none).spread < 0.6
