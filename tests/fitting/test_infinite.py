"""A log density that is plus infinity anywhere is never trusted in silence."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import guides
from softcvi.adapters import AskTellSession
from softcvi.diagnostics import Evidence, Kind, SearchEvidence, WeightEvidence, judge
from softcvi.ladder import Simple
from softcvi.starts import Tempered

GOOD = WeightEvidence(num_draws=4000, khat=0.1, ess=3500.0)
QUICK = {"start": None, "progress": False}


def infinite_beyond(limit):
    """Standard normals, but for plus infinity where the first is above the limit."""

    def log_prob(x):
        return jnp.where(x[0] > limit, jnp.inf, -0.5 * jnp.sum(x**2))

    return softcvi.DensityTarget(log_prob, jnp.zeros(2))


def kinds(verdict):
    return {finding.kind for finding in verdict.findings}


def test_a_fit_tells_plus_infinity_from_nan():
    def log_prob(x):
        value = jnp.where(x[0] > 1.0, jnp.nan, -0.5 * jnp.sum(x**2))
        return jnp.where(x[0] < -1.5, jnp.inf, value)

    target = softcvi.DensityTarget(log_prob, jnp.zeros(2))
    guide = guides.mean_field(target)
    result = softcvi.fit(jax.random.key(0), target, guide, steps=200, **QUICK)
    assert result.num_infinite_densities > 0
    just_nan = softcvi.DensityTarget(
        lambda x: jnp.where(x[0] > 1.0, jnp.nan, -0.5 * jnp.sum(x**2)), jnp.zeros(2)
    )
    result = softcvi.fit(jax.random.key(0), just_nan, guide, steps=200, **QUICK)
    assert result.num_infinite_densities == 0 < result.num_bad_densities


def test_less_than_a_thousandth_of_the_mass_is_enough():
    """2e-4 of it: not one of the verdict's draws need be there."""
    target = infinite_beyond(3.5)
    guide = guides.mean_field(target)
    result = softcvi.fit(jax.random.key(0), target, guide, steps=4000, **QUICK)
    assert result.num_infinite_densities > 0
    assert result.verdict.level == "not trusted"
    assert Kind.INFINITE_DENSITY in kinds(result.verdict)
    assert "plus infinity" in result.verdict.reasons[0]


def test_what_the_first_steps_have_met_counts():
    target = infinite_beyond(5.0)
    guide = guides.mean_field(target).matched(jnp.array([2.0, 0.0]), jnp.eye(2))
    result = softcvi.fit(jax.random.key(0), target, guide, steps=3000, **QUICK)
    assert result.evidence.weights.num_infinite == 0
    assert result.verdict.level == "not trusted"


@pytest.mark.parametrize("start", ["auto", Tempered()])
def test_what_the_search_has_met_counts(start):
    result = softcvi.fit(
        jax.random.key(0), infinite_beyond(6.0), start=start, steps=500, progress=False
    )
    assert result.start.search.nearest_infinite == pytest.approx(6.0, abs=1.0)
    assert result.verdict.level == "caution"
    assert kinds(result.verdict) == {Kind.INFINITE_NEARBY}


def test_an_overflow_far_away_is_named_and_does_no_harm():
    search = SearchEvidence(64, 1, 0, (1.0,), None, 0.0)
    levels = {
        distance: judge(
            Evidence(weights=GOOD, search=search.with_infinite(3, distance))
        )
        for distance in (2.0, 50.0, 700.0)
    }
    assert [v.level for v in levels.values()] == ["caution", "caution", "trusted"]
    assert "the nearest 7e+02 standard" in str(levels[700.0])


def test_two_searches_are_added():
    search = SearchEvidence(64, 1, 0, (1.0,), None, 0.0)
    assert search.with_infinite(0, None).nearest_infinite is None
    both = search.with_infinite(2, 9.0).with_infinite(0, None).with_infinite(3, 12.0)
    assert (both.num_infinite, both.nearest_infinite) == (5, 9.0)


def test_what_another_guide_has_met_counts():
    target = infinite_beyond(1e6)
    guide = guides.mean_field(target)
    one = softcvi.fit(jax.random.key(0), target, guide, steps=200, **QUICK)
    assert one.verdict.trusted
    other = dataclasses.replace(one, num_infinite_densities=3)
    assert not one.with_infinite_of([one, other]).verdict.trusted
    assert one.with_infinite_of([one]) is one


def test_a_ladder_ends_where_no_guide_can_help():
    answer = softcvi.fit_until(
        jax.random.key(0),
        infinite_beyond(2.0),
        steps=200,
        rungs=(Simple(), Simple(1)),
        progress=False,
    )
    assert answer.verdict.level == "not trusted"
    assert len(answer.attempts) == 1


def test_runs_of_a_batch_have_counts_of_their_own():
    def log_prob(x, limit):
        return jnp.where(x[0] > limit, jnp.inf, -0.5 * jnp.sum(x**2))

    target = softcvi.DensityTarget(
        log_prob, jnp.zeros(2), observed=jnp.array([3.0, 1e6])
    )
    results = softcvi.fit_many(
        jax.random.split(jax.random.key(0), 2),
        target,
        guides.mean_field(target),
        steps=2000,
        batched_target=True,
        **QUICK,
    )
    assert [r.num_infinite_densities > 0 for r in results] == [True, False]
    assert [r.verdict.level for r in results] == ["not trusted", "trusted"]


def test_plus_infinity_cannot_be_told():
    target = infinite_beyond(1e6)
    session = AskTellSession(
        jax.random.key(0), guides.mean_field(target), budget=8, steps=1
    )
    session.ask(4)
    with pytest.raises(ValueError, match=r"plus infinity at the points with ids \[2\]"):
        session.tell(np.array([0.0, np.nan, np.inf, -np.inf]))
    assert len(session.pending) == 4
    session.tell(np.array([0.0, np.nan, -1.0, -np.inf]))
    assert not session.pending
