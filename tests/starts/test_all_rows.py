"""A search with a sample of the rows, then with all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi.starts import Explore
from softcvi.targets import DataTarget

ROWS = 60_000


@pytest.fixture(scope="module")
def report():
    """Rows that know the square of one parameter, and the other."""
    rng = np.random.default_rng(0)
    y = rng.normal([0.25, 1.0], 1.0, size=(ROWS, 2)).astype(np.float32)

    def log_likelihood(x, rows):
        centre = jnp.stack([x[0] ** 2, x[1]])
        return -0.5 * jnp.sum((rows - centre) ** 2, axis=1)

    target = DataTarget(
        lambda x: -0.5 * jnp.sum(x**2), log_likelihood, jnp.zeros(2), data=y
    )
    return Explore().find(jax.random.key(0), target), y


def test_both_modes_are_found_and_placed_by_all_rows(report):
    found, y = report
    assert "a sample of the rows" in found.description
    assert found.search.num_places == len(found.modes) == 2
    mean = y.mean(axis=0, dtype=np.float64)
    sd = 1 / np.sqrt(ROWS)
    signs = sorted(float(np.sign(mode.mean[0])) for mode in found.modes)
    assert signs == [-1.0, 1.0]
    for mode in found.modes:
        # A sample of 4,096 rows is 4 sd away; moments of 250 draws within 0.3.
        assert abs(mode.mean[1] - mean[1]) < 0.3 * sd
        assert abs(mode.mean[0] ** 2 - mean[0]) < 0.3 * sd
        np.testing.assert_allclose(mode.deviations[1], sd, rtol=0.2)
    gap = found.modes[0].log_evidence - found.modes[1].log_evidence
    assert abs(gap) < 0.5


def test_broad_draws_of_the_sample_are_not_evidence_about_all_rows(report):
    assert report[0].search.broad is None
