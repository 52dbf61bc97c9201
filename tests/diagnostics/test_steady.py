"""Log densities that are another function each time that they are traced."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.diagnostics import examine, judge
from softcvi.diagnostics._find import Kind
from softcvi.diagnostics._steady import change_between_traces

LIKE = {"x": jnp.zeros(2)}
ROWS = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
NOISE = np.random.default_rng(1)
COUNTER = itertools.count()
CALLS: list[int] = []


def a_generator(theta):
    return -0.5 * jnp.sum((theta["x"] - NOISE.normal()) ** 2)


def some_rows(theta):
    rows = ROWS[NOISE.choice(len(ROWS), 100)]
    return -5.0 * jnp.sum((rows - theta["x"]) ** 2)


def a_clock(theta):
    # Single precision would round off milliseconds after hours.
    return -0.5 * jnp.sum((theta["x"] - time.perf_counter() * 1e3 % 100) ** 2)


def a_counter(theta):
    # The first two traces have other operations, not only other constants.
    terms = [theta["x"] - 1.0] * (1 + next(COUNTER))
    return -0.5 * sum(jnp.sum(term**2) for term in terms)


def steady(theta):
    CALLS.append(1)
    rows = jnp.asarray(ROWS)
    return -0.5 * jax.lax.fori_loop(
        0, 3, lambda i, s: s + jnp.sum((rows[i] - theta["x"]) ** 2), 0.0
    )


def other_operations(theta):
    twice = len(CALLS) % 2
    CALLS.append(1)
    square = jnp.sum(theta["x"] ** 2)
    return -0.25 * (square + square) if twice else -0.5 * square


def verdict_of(log_prob):
    target = softcvi.DensityTarget(log_prob, LIKE)
    guide = softcvi.guides.mean_field(target)
    return judge(examine(jax.random.key(0), softcvi.Posterior(guide, target)))


@pytest.mark.parametrize("log_prob", [a_generator, some_rows, a_clock, a_counter])
def test_what_changes_between_traces_is_not_trusted(log_prob):
    verdict = verdict_of(log_prob)
    found = [f for f in verdict.findings if f.kind is Kind.UNSTEADY]
    assert found
    assert verdict.level == "not trusted"
    assert "nats when it is traced again" in str(verdict)
    assert any("before the model is made" in tip for tip in verdict.advice)


@pytest.mark.parametrize("log_prob", [steady, other_operations])
def test_what_only_looks_different_is_no_finding(log_prob):
    target = softcvi.DensityTarget(log_prob, LIKE)
    guide = softcvi.guides.mean_field(target)
    assert change_between_traces(target, guide) < 1e-4


def test_a_model_of_numpyro_is_looked_at_too():
    numpyro = pytest.importorskip("numpyro")

    def model(y):
        centre = NOISE.normal()
        mu = numpyro.sample("mu", numpyro.distributions.Normal(centre, 1.0))
        numpyro.sample("y", numpyro.distributions.Normal(mu, 1.0), obs=y)

    target = softcvi.adapters.from_numpyro(model, np.ones(3))
    guide = softcvi.guides.mean_field(target)
    assert change_between_traces(target, guide) > 1e-3
