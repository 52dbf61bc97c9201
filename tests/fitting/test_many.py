"""Many fits in one program: independent of each other, and equal to single ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import FitError, fit_many
from softcvi._compile import fused

CENTRES = np.array([[0.0, 1.0], [np.nan, 0.0], [0.5, -0.5]], np.float32)


@pytest.fixture(scope="module")
def batched(make_target):
    """One target per run; that of the second is broken."""
    target = make_target()
    return softcvi.DensityTarget(
        target.log_prob, target.structure, observed=jnp.asarray(CENTRES)
    )


@pytest.fixture(scope="module")
def results(batched, guide):
    keys = jax.random.split(jax.random.key(0), 3)
    return fit_many(
        keys,
        batched,
        guide,
        steps=300,
        start=None,
        batched_target=True,
        progress=False,
    )


def loc(result):
    return np.asarray(result.posterior.guide.distribution.loc)


def test_a_broken_run_fails_alone(results):
    assert [r.status for r in results] == ["finished", "failed", "finished"]
    assert "300 of 300 steps had no finite label" in results[1].message
    assert results[1].num_skipped_steps == 300
    assert results[1].num_bad_densities == 8 * 300
    np.testing.assert_array_equal(loc(results[1]), 0.0)  # where it started
    assert np.all(np.isnan(results[1].history.excess))
    for i in (0, 2):
        assert results[i].num_skipped_steps == 0
        np.testing.assert_allclose(loc(results[i]), CENTRES[i], atol=0.3)
        np.testing.assert_array_equal(results[i].posterior.target.observed, CENTRES[i])


def test_a_run_equals_the_single_fit_with_its_key(results, make_target, guide):
    key = jax.random.split(jax.random.key(0), 3)[2]
    target = make_target()
    target = softcvi.DensityTarget(
        target.log_prob, target.structure, observed=jnp.asarray(CENTRES[2])
    )
    single = softcvi.fit(key, target, guide, steps=300, start=None, progress=False)
    # The same numbers drawn; the arithmetic is ordered differently.
    np.testing.assert_allclose(loc(results[2]), loc(single), atol=1e-4)
    np.testing.assert_allclose(
        results[2].history.excess, single.history.excess, atol=1e-4
    )


def test_a_start_means_the_same_for_one_fit_and_for_many(make_target, guide):
    target, keys = make_target(), jax.random.split(jax.random.key(0), 2)
    draws = {"x": 5.0 + np.random.default_rng(0).normal(size=(50, 2))}
    arguments = {"steps": 20, "start": draws, "progress": False}
    many = softcvi.fit_many(keys, target, guide, **arguments)
    for key, result in zip(keys, many, strict=True):
        single = softcvi.fit(key, target, guide, **arguments)
        own, other = (r.posterior.sample(key, 5)["x"] for r in (result, single))
        np.testing.assert_allclose(own, other, atol=1e-4)
        assert result.choices["start"] == single.choices["start"] == "draws"
        assert result.start.modes[0].mean == pytest.approx(single.start.modes[0].mean)


def test_a_failed_run_raises_if_asked(batched, guide, results):
    keys = jax.random.split(jax.random.key(0), 3)
    arguments = {"steps": 300, "start": None, "progress": False}
    with pytest.raises(FitError, match="no finite label") as caught:
        fit_many(keys, batched, guide, batched_target=True, throw=True, **arguments)
    assert caught.value.result.status == "failed"


def test_the_fused_generator_draws_the_same_numbers():
    key = jax.random.key(7)

    @jax.jit
    def draw(key):
        inner = jax.random.fold_in(key, 5)
        one, two = jax.random.split(inner)
        return jax.random.normal(one, (3, 5)), jax.random.bits(two, (7,), "uint8")

    for ours, theirs in zip(draw(fused(key)), draw(key), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = jax.random.key(0, impl="rbg")
    assert fused(other) is other
