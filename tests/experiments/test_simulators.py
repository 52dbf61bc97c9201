"""Simulators in NumPy: their reference, their records and the table."""

from pathlib import Path

import numpy as np
import pytest
from softcvi_experiments import simulators

from softcvi.sweeps import RecordStore


def test_the_reference_finds_a_posterior_that_is_known():
    y, noise = np.array([2.0, -1.0]), 0.05

    def log_likelihood(points):
        return -0.5 * np.sum(((points - y) / noise) ** 2, axis=1)

    known = simulators.Simulator(("a", "b"), log_likelihood)
    mean, sd, ess = simulators.moments(known)
    exact = (1 + noise**-2) ** -0.5
    assert ess > 50_000
    np.testing.assert_allclose(mean, y * exact**2 / noise**2, atol=4 * exact / 200)
    np.testing.assert_allclose(sd, exact, rtol=0.02)


@pytest.mark.parametrize("name", simulators.SIMULATORS)
def test_a_batch_of_points_is_evaluated_like_each_of_them(name):
    simulator = simulators.SIMULATORS[name]
    points = np.random.default_rng(0).normal(size=(4, simulator.size))
    values = simulator.log_density(points)
    assert np.all(np.isfinite(values))
    alone = [simulator.log_density(point[None])[0] for point in points]
    np.testing.assert_allclose(values, alone)


@pytest.mark.slow
def test_ask_and_tell_ends_with_what_it_trusts():
    row = simulators.compare("drug", "ask and tell", seed=1)
    assert row.trusted
    # Means have an error of a twentieth, and the largest of four is compared.
    assert row.mean_off < 0.2
    assert row.evaluations < 2_000


def test_the_page_is_that_of_its_records():
    folder = Path(__file__).parents[2] / "results" / "simulators"
    records = RecordStore(folder).latest(*simulators.Study.identity)
    assert {r["method"] for r in records} >= {"ask and tell", "SMC"}
    assert (folder / "simulators.md").read_text() == simulators.page(records)
