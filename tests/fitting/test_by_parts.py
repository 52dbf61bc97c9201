"""Posteriors that are products are fitted, weighted and judged part by part."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.fitting._by_parts import is_clear
from softcvi.starts import Moments, SearchEvidence, StartReport

PAIRS = 10
GRID = np.linspace(-5, 5, 100_001)


def log_prob(theta, observed):
    """A double well, and a parameter with a heavy tail whose centre is data."""
    x, y = theta["x"], theta["y"]
    return jnp.sum(0.5 * x + 4 * x**2 - x**4 - 3.0 * jnp.log1p((y - observed) ** 2))


@pytest.fixture(scope="module")
def timed():
    """A fit, and the seconds that it took."""
    like = {name: np.zeros(PAIRS, np.float32) for name in "xy"}
    observed = jnp.where(jnp.arange(PAIRS) < 5, 0.0, 7.0).astype(jnp.float32)
    target = softcvi.DensityTarget(log_prob, like, observed=observed)
    began = time.perf_counter()
    result = softcvi.fit(jax.random.key(0), target, steps=600, progress=False)
    return result, time.perf_counter() - began


@pytest.fixture(scope="module")
def result(timed):
    return timed[0]


def test_all_time_is_counted_once(timed):
    result, seconds = timed
    told = result.seconds_start + result.seconds_compile + result.seconds_run
    assert 0.8 * seconds < told <= seconds


def test_product_of_wells_is_right_and_trusted(result):
    assert result.verdict.trusted
    assert result.verdict.evidence.num_parts == 2 * PAIRS
    assert "independent parts" in result.choices["parts"]
    height = np.exp(0.5 * GRID + 4 * GRID**2 - GRID**4)
    share = height[GRID > 0].sum() / height.sum()
    draws = result.sample(jax.random.key(1), 20_000)
    found = np.mean(np.asarray(draws["x"]) > 0, axis=0)
    # Largest of ten errors.
    assert np.max(np.abs(found - share)) < 4 * np.sqrt(share * (1 - share) / 20_000)
    centres = np.asarray(result.posterior.target.observed)
    assert np.max(np.abs(np.mean(draws["y"], axis=0) - centres)) < 0.03


def test_evidence_is_that_of_all_parts(result):
    step = GRID[1] - GRID[0]
    well = np.log(np.sum(np.exp(0.5 * GRID + 4 * GRID**2 - GRID**4)) * step)
    tail = np.log(3 * np.pi / 8)
    right = PAIRS * (well + tail)
    assert result.verdict.evidence.weights.log_evidence == pytest.approx(right, abs=0.1)
    assert result.importance.log_evidence == result.parts.log_evidence


def test_guide_is_the_product_of_all_guides(result, tmp_path):
    posterior = result.posterior
    draws = posterior.sample(jax.random.key(2), 4000)
    assert {name: values.shape for name, values in draws.items()} == {
        "x": (4000, PAIRS),
        "y": (4000, PAIRS),
    }
    # Its log density at a point is the sum of those of the parts.
    point = {name: jnp.full((1, PAIRS), 0.5) for name in "xy"}
    parts, vector = result.parts, np.full(2 * PAIRS, 0.5, np.float32)
    each = sum(
        len(rows) * float(own.posterior.log_prob(vector[rows[:1]])[0])
        for rows, own in zip(parts.parts.kinds, parts.results, strict=True)
    )
    assert float(posterior.log_prob(point)[0]) == pytest.approx(each, rel=1e-4)
    posterior.save(tmp_path / "fit.softcvi")
    again = softcvi.load(tmp_path / "fit.softcvi", target=posterior.target)
    np.testing.assert_array_equal(
        again.sample(jax.random.key(2), 4000)["x"], draws["x"]
    )


def test_summary_shows_draws_of_the_parts(result):
    assert result.draws_are == "of each independent part by itself"
    assert f"each of {2 * PAIRS} independent parts" in result.summary()
    draws, weights = result.weighted_draws
    assert weights is None
    assert draws["x"].shape == (4000, PAIRS)


@pytest.mark.slow
def test_ladder_tries_the_parts_first():
    target = softcvi.DensityTarget(
        lambda x: jnp.sum(0.5 * x + 4 * x**2 - x**4), jnp.zeros(18)
    )
    answer = softcvi.fit_until(jax.random.key(0), target, steps=600, progress=False)
    assert answer.trusted
    assert [attempt.name for attempt in answer.attempts] == ["independent parts"]


@pytest.mark.parametrize(
    ("modes", "missing", "clear"),
    [(1, 0.0, True), (1, None, True), (2, 0.0, False), (1, 0.5, False)],
)
def test_a_start_with_one_place_is_clear(modes, missing, clear):
    mode = Moments(np.zeros(2), np.eye(2))
    search = SearchEvidence(4, modes, 0, (1.0,), None, missing)
    target = softcvi.DensityTarget(lambda x: -jnp.sum(x**2), jnp.zeros(2))
    assert is_clear(StartReport(target, (mode,) * modes, search)) == clear
