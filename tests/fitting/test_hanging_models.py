"""Models that do not come back: time limits, Ctrl-C, verdicts, the end of Python."""

import os
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import fitting
from softcvi.diagnostics import Kind
from softcvi.fitting import _stuck, _unanswered


class Model:
    """A normal posterior whose density may wait instead of coming back."""

    def __init__(self):
        self.calls, self.hangs_from = 0, float("inf")
        self.let_go, self.presses = threading.Event(), []
        self.target = softcvi.DensityTarget(self._log_prob, np.zeros(2, np.float32))

    def _log_prob(self, x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(self._density, shape, x, vmap_method="broadcast_all")

    def _density(self, x):
        self.calls += 1
        if self.calls >= self.hangs_from:
            while self.presses:
                press_ctrl_c(self.presses.pop())
            if not self.let_go.wait(120):
                self.let_go.set()  # a test that fails waits once, not at every step
        return np.asarray(-0.5 * np.sum((np.asarray(x) - 1.0) ** 2, -1), np.float32)

    def fit(self, **settings):
        """A fit of a guide that needs no start."""
        return softcvi.fit(
            jax.random.key(0),
            self.target,
            softcvi.guides.mean_field(self.target),
            start=None,
            progress=False,
            **settings,
        )


@pytest.fixture
def model():
    # A shell starts background jobs with Ctrl-C ignored, and the test would wait.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Model()
    yield made
    signal.signal(signal.SIGINT, before)
    made.let_go.set()


def press_ctrl_c(after):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_a_time_limit_ends_a_fit_and_its_verdict(model):
    model.hangs_from = 41
    began = time.monotonic()
    result = model.fit(stopping=fitting.TimeLimit(1.0))
    assert result.status == "stopped"
    assert "time limit of 1 s" in result.message
    assert "did not return" in result.message
    assert 0 < result.steps <= 41
    calls = model.calls
    assert [f.kind for f in result.verdict.findings] == [Kind.NO_ANSWER]
    assert not result.verdict.trusted
    assert "log evidence" not in result.summary()
    # The draws are the guide's, for which nothing is asked of the model.
    assert result.sample(jax.random.key(1), 10)["value"].shape == (10, 2)
    assert model.calls == calls
    assert time.monotonic() - began < 30


def test_one_ctrl_c_is_noticed(model):
    model.hangs_from, model.presses = 41, [0.2]
    result = model.fit()
    assert result.status == "interrupted"
    assert "Ctrl-C" in result.message
    assert result.steps > 0
    assert Kind.NO_ANSWER in [f.kind for f in result.verdict.findings]


def test_a_verdict_is_not_waited_for_if_the_model_hangs_after_a_stop(
    model, monkeypatch
):
    result = model.fit(steps=1_000_000, stopping=fitting.TimeLimit(0.5))
    assert result.status == "stopped"
    monkeypatch.setattr(_unanswered, "_SECONDS", 0.0)
    monkeypatch.setattr(_unanswered, "_TIMES", 0.0)
    model.hangs_from = model.calls + 1
    assert Kind.NO_ANSWER in [f.kind for f in result.verdict.findings]
    assert not result.verdict.trusted
    assert result.sample(jax.random.key(1), 10)["value"].shape == (10, 2)


def test_a_fit_that_was_stopped_has_a_verdict_if_its_model_answers(model):
    result = model.fit(steps=1_000_000, stopping=fitting.TimeLimit(0.5))
    assert result.status == "stopped"
    assert result.evidence.weights is not None
    assert Kind.NO_ANSWER not in [f.kind for f in result.verdict.findings]


def test_a_second_ctrl_c_ends_at_once(model):
    model.hangs_from, model.presses = 41, [0.2, 0.5]
    with pytest.raises(KeyboardInterrupt):
        model.fit()


@pytest.fixture(params=[0.01, 1000.0])
def busy(request, monkeypatch):
    """A model that never comes back from the start, in Python or outside of it."""
    monkeypatch.setattr(_stuck, "_LEAST_SECONDS", 0.5)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    calls = []

    def density(x):
        calls.append(1)
        while len(calls) > 3:
            time.sleep(request.param)
        return np.asarray(-0.5 * np.sum(np.asarray(x) ** 2, -1), np.float32)

    def log_prob(x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(density, shape, x, vmap_method="broadcast_all")

    yield softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    signal.signal(signal.SIGINT, before)


def test_a_call_that_is_stuck_in_the_start_ends_at_the_time_limit(busy):
    limit = fitting.TimeLimit(0.5)
    result = softcvi.fit(
        jax.random.key(0), busy, stopping=limit, progress=False, throw=False
    )
    assert result.status == "failed"
    assert "longer than the whole fit may take" in result.message
    assert Kind.NO_ANSWER in [f.kind for f in result.verdict.findings]


def test_a_call_that_is_stuck_ends_at_the_budget_of_fit_until(busy):
    with pytest.raises(softcvi.FitError, match="longer than the whole fit may take"):
        softcvi.fit_until(jax.random.key(0), busy, budget=0.5, progress=False)


def test_calls_of_other_lengths_are_left_alone(monkeypatch):
    monkeypatch.setattr(_stuck, "_LEAST_SECONDS", 0.0)

    def slow(x):
        for _ in range(10):
            time.sleep(0.12)
        return np.asarray(x)

    def call(x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(slow, shape, x, vmap_method="sequential")

    # Each takes 1.2 s, and both together longer than the limit.
    with _stuck.CallsLimited(2.2) as calls:
        both = jax.jit(lambda x: call(x) + call(x + 1))(1.0)
        assert float(both) == 3.0
    assert not calls.has_ended_one


_HANGS = """
import sys, time, jax, jax.numpy as jnp, numpy as np, softcvi
calls = []

def density(x):
    calls.append(1)
    while len(calls) > 100:
        time.sleep({pause})
    return np.float32(-0.5 * np.sum(np.asarray(x) ** 2))

def log_prob(x):
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(density, shape, x, vmap_method="sequential")

target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
guide, limit = softcvi.guides.mean_field(target), softcvi.fitting.TimeLimit(0.5)
result = softcvi.fit(
    jax.random.key(0), target, guide, start=None, progress=False, stopping=limit
)
print(result.status)
"""


@pytest.mark.parametrize("pause", [0.0, 0.3, 1000.0])
def test_the_interpreter_ends_as_usual_after_a_hanging_model(pause):
    command = [sys.executable, "-c", _HANGS.format(pause=pause)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stdout.strip()) == (0, "stopped"), run.stderr
    assert "Traceback" not in run.stderr
