"""Which of the modes that a start found are in the answer."""

import numpy as np
import pytest

from softcvi.fitting._compare import missed_mass
from softcvi.posterior import ImportanceSample
from softcvi.starts import Moments

DIM, DRAWS = 30, 900
CENTRES = np.random.default_rng(0).uniform(-20.0, 20.0, (3, DIM))


def modes(evidence):
    return tuple(
        Moments(centre, np.eye(DIM), log_evidence=log_evidence)
        for centre, log_evidence in zip(CENTRES, evidence, strict=True)
    )


def draws_near(parts):
    """Draws with heavier tails than the modes of the start have."""
    noise = np.random.default_rng(1).standard_t(2.0, (DRAWS, DIM))
    vectors = CENTRES[np.resize(parts, DRAWS)] + noise
    log_weights = np.full(DRAWS, -np.log(DRAWS))
    zeros = np.zeros(DRAWS)
    return ImportanceSample(
        {"x": vectors}, zeros, zeros, log_weights, 0.0, 0.0, particles=vectors
    )


def test_draws_in_heavy_tails_belong_to_the_mode_that_is_most_likely():
    assert missed_mass(modes([1.0, 0.0, 0.5]), draws_near([0, 1, 2])) == 0.0


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_mode_without_draws_is_missed_whatever_the_tails(left_out):
    kept = [part for part in range(3) if part != left_out]
    missed = missed_mass(modes([0.0, 0.0, 0.0]), draws_near(kept))
    assert missed == pytest.approx(1 / 3)
