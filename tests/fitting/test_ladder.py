"""The ladder: rungs in order, what makes it stop, and rungs that fail."""

import dataclasses
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import ladder
from softcvi.diagnostics import BroadMoments
from softcvi.fitting import Silent
from softcvi.ladder import ChainDraws, LadderState
from softcvi.ladder._chain_space import chain_space
from softcvi.ladder._convergence import rhat_and_ess
from softcvi.starts import Explore, Moments, StartReport, suggest

QUICK = {"steps": 500, "progress": False}


def log_gamma_density(theta):
    """Logarithms of gamma variables of shape 4: skewed, mean and sd known."""
    return jnp.sum(4.0 * theta["x"] - jnp.exp(theta["x"]))


def begun(target, steps=500, budget=60.0):
    """The state of a ladder before its first rung."""
    report = Explore().find(jax.random.key(0), target)
    return begun_with(report, steps, budget)


def begun_with(report, steps=500, budget=60.0):
    return LadderState(
        key=jax.random.key(1),
        target=report.target,
        report=report,
        suggestions=suggest(jax.random.key(2), report),
        khat=0.7,
        steps=steps,
        reporter=Silent(),
        ends=time.perf_counter() + budget,
    )


@pytest.fixture(scope="module")
def skewed():
    target = softcvi.DensityTarget(log_gamma_density, {"x": jnp.zeros(3)})
    return softcvi.fit_until(jax.random.key(0), target, progress=False, steps=2000)


def test_a_skewed_posterior_is_answered_by_weighted_draws_of_a_t(skewed):
    """Digamma and trigamma of 4 are 1.2561 and 0.2838."""
    answer = skewed
    assert answer.trusted
    assert answer.chains is None
    # The first rung, without a flow: on some keys a mixture of two t, and on others a
    # normal, as the skewness of 0.53 is near where that is tried.
    [attempt] = answer.attempts
    assert attempt.name.endswith(("Student's t", "normal"))
    assert answer.result.choices["guide"].startswith(attempt.name)
    n = 10_000
    x = np.asarray(answer.sample(jax.random.key(1), n)["x"])
    sd = np.sqrt(0.2838)
    # Resampled from four times as many, of which more than a half count.
    error = sd / np.sqrt(n)
    np.testing.assert_allclose(x.mean(axis=0), 1.2561, atol=5 * error)
    np.testing.assert_allclose(x.std(axis=0), sd, rtol=0.05)


def test_the_answer_of_a_ladder_offers_what_that_of_a_fit_does(skewed):
    fit = skewed.attempts[0].answer
    assert skewed.chains is fit.chains is None
    for name in ("status", "history", "seconds_compile", "seconds_run"):
        assert getattr(skewed, name) is not None
        assert hasattr(fit, name)
    assert skewed.seconds_start > 0
    assert skewed.seconds_run == fit.seconds_run > 0
    assert skewed.verdict is fit.verdict
    assert skewed.attempts[0].name in skewed.message
    assert fit.summary() in skewed.summary()


@pytest.mark.slow
def test_far_from_any_guide_many_dimensions_go_straight_to_chains():
    """Ten pairs of a scale and its variable, centred: no normal and no flow will do."""

    def funnels(theta):
        x = theta["x"].reshape(10, 2)
        scale = -0.5 * (x[:, 0] / 3.0) ** 2
        return jnp.sum(scale - 0.5 * (x[:, 1] * jnp.exp(-x[:, 0])) ** 2 - x[:, 0])

    target = softcvi.DensityTarget(funnels, {"x": jnp.zeros(20)})
    state = begun(target)
    attempt = ladder.Simple().attempt(state)
    assert attempt is not None
    assert not attempt.accepted
    state.attempts.append(attempt)
    assert attempt.khat > 1.0
    assert ladder.Flow().attempt(state) is None


def test_a_guide_as_placed_has_no_history_of_another():
    target = softcvi.DensityTarget(log_gamma_density, {"x": jnp.zeros(3)})
    attempt = ladder.AsPlaced().attempt(begun(target))
    assert attempt is not None
    assert attempt.answer.history.step.size == 0
    assert attempt.answer.steps == 0
    assert "not trained" in attempt.answer.message
    assert attempt.answer.verdict.khat < 0.7


def banana(theta):
    x, y = theta["x"][0], theta["x"][1]
    return -0.5 * (x / 3.0) ** 2 - 0.5 * (y - 0.5 * x**2) ** 2


@pytest.fixture(scope="module")
def by_chains():
    target = softcvi.DensityTarget(banana, {"x": jnp.zeros(2)})
    return softcvi.fit_until(
        jax.random.key(0), target, rungs=(ladder.Chains(acceptance=0.95),), **QUICK
    )


def test_chains_answer_where_no_normal_will_do(by_chains):
    chain = by_chains.chains
    assert chain is by_chains.attempts[0].answer.chains
    x = np.asarray(chain.draws["x"])[:, 0]
    assert chain.rhat < 1.05
    assert abs(x.mean()) < 4 * 3.0 / np.sqrt(chain.ess)
    np.testing.assert_allclose(x.std(), 3.0, rtol=4 / np.sqrt(chain.ess))


def test_the_draws_of_chains_are_those_that_are_shown(by_chains):
    draws = np.asarray(by_chains.sample(jax.random.key(0), 500)["x"])
    kept = np.asarray(by_chains.chains.draws["x"])
    assert {tuple(row) for row in draws} <= {tuple(row) for row in kept}
    row = by_chains.summary().splitlines()[-2].split()
    assert row[0] == "x[0]"
    assert float(row[1]) == pytest.approx(float(kept[:, 0].mean()), abs=1e-3, rel=1e-3)
    assert by_chains.verdict.evidence.sampler.rhat == by_chains.chains.rhat
    assert by_chains.seconds_compile > 0


class Refused(ladder.AbstractRung):
    """Reaches an answer that is not accepted."""

    def attempt(self, state):
        guide = softcvi.guides.mean_field(state.target)
        return state.judged(
            "too narrow",
            lambda: softcvi.fit(
                state.key, state.target, guide, steps=20, start=None, progress=False
            ),
        )


class Broken(ladder.AbstractRung):
    error: Exception

    def attempt(self, state):
        raise self.error


@pytest.mark.parametrize("error", [MemoryError("no room"), RuntimeError("no luck")])
def test_a_rung_that_fails_loses_nothing(error):
    target = softcvi.DensityTarget(
        lambda t: -0.5 * jnp.sum((t["x"] / 30.0) ** 2), {"x": jnp.zeros(2)}
    )
    answer = softcvi.fit_until(
        jax.random.key(0), target, rungs=(Refused(), Broken(error)), **QUICK
    )
    assert not answer.trusted
    assert answer.best.name == "too narrow"
    failed = answer.attempts[1]
    assert failed.failure == f"{type(error).__name__}: {error}"
    assert failed.error is error
    assert f"failed: {failed.failure}" in answer.summary()
    assert answer.sample(jax.random.key(1), 10)["x"].shape == (10, 2)


def test_without_numpyro_the_best_guide_is_given_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro.infer", None)
    target = softcvi.DensityTarget(banana, {"x": jnp.zeros(2)})
    answer = softcvi.fit_until(
        jax.random.key(0), target, rungs=(Refused(), ladder.Chains()), **QUICK
    )
    assert "NumPyro" in answer.attempts[1].failure
    assert answer.result is answer.answer


def test_if_all_rungs_fail_the_first_error_is_raised():
    target = softcvi.DensityTarget(banana, {"x": jnp.zeros(2)})
    rungs = (Broken(KeyError("one")), Broken(ValueError("two")))
    with pytest.raises(KeyError, match="one"):
        softcvi.fit_until(jax.random.key(0), target, rungs=rungs, **QUICK)
    with pytest.raises(ValueError, match="rungs: give at least one"):
        softcvi.fit_until(jax.random.key(0), target, rungs=())


def test_chains_begin_dispersed_and_in_every_mode():
    centres = jnp.asarray([[-6.0, 0.0], [6.0, 0.0]])

    def two(theta):
        return jax.nn.logsumexp(-0.5 * jnp.sum((theta["x"] - centres) ** 2, axis=-1))

    space = chain_space(begun(softcvi.DensityTarget(two, {"x": jnp.zeros(2)})))
    x = jnp.stack([space.guide.from_base(z)[0]["x"] for z in space.centres])
    assert sorted(np.round(np.asarray(x)[:, 0]).tolist()) == [-6, -6, 6, 6]
    normal = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(50))
    starts = np.asarray(chain_space(begun(normal)).starts)
    # Standard deviation two where the posterior's is one, of two hundred numbers.
    assert 1.6 < starts.std() < 2.4


def test_chains_that_agree_are_compared_with_the_broad_draws_of_the_search():
    """All chains stay in a part of the posterior whose rest the search has met."""
    target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
    state = begun(target)
    attempt = ladder.Chains(warmup=200, draws=500).attempt(state)
    assert attempt.accepted
    met = np.random.default_rng(0).normal(size=(20_000, 2)) * [1.0, 3.0]
    search = dataclasses.replace(state.report.search, broad=BroadMoments.of(met))
    state.report = dataclasses.replace(state.report, search=search)
    attempt = ladder.Chains(warmup=200, draws=500).attempt(state)
    assert attempt.verdict.level == "not trusted"
    assert attempt.verdict.evidence.sampler.rhat < 1.01


def test_chains_that_differ_in_spread_or_place_have_a_large_rhat():
    draws = np.random.default_rng(0).normal(size=(4, 1000, 3))
    rhat, ess = rhat_and_ess({"x": draws})
    assert rhat < 1.01
    assert ess > 2500
    wide, moved, constant = draws.copy(), draws.copy(), draws.copy()
    wide[0, :, 1] *= 3.0
    moved[0, :, 1] += 1.0
    constant[:, :, 1] = 7.0
    assert rhat_and_ess({"x": wide})[0] > 1.05
    assert rhat_and_ess({"x": moved})[0] > 1.05
    assert rhat_and_ess({"x": constant})[0] < 1.01


@pytest.mark.parametrize(
    ("rhat", "ess", "divergences", "trusted"),
    [(1.0, 900, 0, True), (1.1, 900, 0, False), (1, 90, 0, False), (1, 900, 50, False)],
)
def test_chains_are_trusted_that_agree_mix_and_seldom_diverge(
    rhat, ess, divergences, trusted
):
    chain = ChainDraws({"x": np.zeros(4000)}, rhat, ess, divergences)
    assert chain.trusted == trusted
    assert str(chain).startswith("trusted" if trusted else "not trusted")


@pytest.mark.parametrize("dim", [30, 2500])
def test_chains_have_a_space_without_a_covariance_matrix(dim):
    """What a start knows of many parameters: scales, and a factor of few columns."""
    target = softcvi.DensityTarget(
        lambda x: -0.5 * jnp.sum((x / 3.0) ** 2), np.zeros(dim, np.float32)
    )
    mode = Moments(np.ones(dim), scale=np.full(dim, 3.0), factor=np.zeros((dim, 2)))
    report = StartReport(target, (mode,))
    space = chain_space(begun_with(report))
    assert space.starts.shape == (4, dim)
    points = np.stack([space.guide.from_base(z)[0] for z in space.starts])
    # Twice as wide as the mode, with the error of 4 dim numbers.
    assert abs(points.std() - 6.0) < 6 * 6.0 / np.sqrt(8 * dim)
