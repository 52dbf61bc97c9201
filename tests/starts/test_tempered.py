"""The start without gradients: several populations tell of modes that one loses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts import Tempered

DIM = 5


def three_normals(theta, observed):
    squares = jnp.sum((theta["x"] - observed["means"]) ** 2, axis=-1)
    return jax.scipy.special.logsumexp(-0.5 * squares)


def found_in(means, key):
    target = softcvi.DensityTarget(
        three_normals,
        {"x": jnp.zeros(DIM)},
        observed={"means": jnp.asarray(means, float)},
    )
    return Tempered().find(jax.random.key(key), target)


@pytest.mark.parametrize(
    "seed",
    [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5))],
)
def test_modes_of_equal_width_are_all_found_or_said_to_be_missing(seed):
    means = np.random.default_rng([3, seed]).uniform(-10, 10, (3, DIM))
    report = found_in(means, seed)
    places = np.stack([mode.mean for mode in report.modes])
    distances = np.linalg.norm(places[:, None] - means, axis=-1)
    is_missing = np.min(distances, axis=0) > 1.0
    assert not np.any(is_missing) or report.search.missing_mass > 0.1


def test_a_single_mode_is_met_by_all_populations():
    report = found_in(np.zeros((3, DIM)) + 2.0, 0)
    assert len(report.modes) == 1
    assert report.search.missing_mass == 0.0
    assert report.search.num_seen_once == 0
    broad = report.search.broad
    np.testing.assert_allclose(broad.means, 2.0, atol=0.3)
    np.testing.assert_allclose(broad.deviations, 1.0, atol=0.3)
