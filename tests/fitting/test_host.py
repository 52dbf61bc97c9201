"""The host beside the compiled loop: equal histories, time limits, Ctrl-C."""

import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi import fitting
from softcvi.fitting import _drive, _interrupt, _train
from softcvi.fitting._interrupt import Abandoned, Patience, wait_for


@pytest.mark.slow
def test_equal_runs_have_equal_histories_whatever_the_clock(quick, monkeypatch):
    whole = quick(steps=3000)
    monkeypatch.setattr(_drive, "_CHUNK_SECONDS", 1e-4)
    pieces = quick(steps=3000)
    for name in ("step", "excess", "label_ess", "elbo"):
        np.testing.assert_array_equal(
            getattr(whole.history, name), getattr(pieces.history, name)
        )


def test_equal_runs_stop_at_the_same_step(quick, monkeypatch):
    rule = fitting.Plateau(window=0.1)
    first = quick(steps=20_000, stopping=rule)
    monkeypatch.setattr(_drive, "_CHUNK_SECONDS", 0.01)
    assert quick(steps=20_000, stopping=rule).steps == first.steps < 20_000


@pytest.mark.parametrize(
    ("is_compiling", "stopping", "is_early"),
    [(False, None, False), (True, None, True), (False, fitting.TimeLimit(1e6), True)],
)
def test_the_verdict_is_prepared_while_the_loop_is_compiled_or_runs(
    is_compiling, stopping, is_early, quick, monkeypatch
):
    events = []

    def wait(work, patience, meanwhile):
        events.append("steps")
        return wait_for(work, patience, meanwhile)

    monkeypatch.setattr(_drive, "is_compiling", lambda seconds: is_compiling)
    monkeypatch.setattr(_drive, "wait_for", wait)
    monkeypatch.setattr(
        _train, "prepare_examination", lambda posterior: events.append("prepared")
    )
    result = quick(steps=2000, stopping=stopping)
    assert events.count("prepared") == 1
    assert (events[0] == "prepared") == is_early
    # A longer chunk gives the same answer.
    np.testing.assert_array_equal(result.history.elbo, quick(steps=2000).history.elbo)


def test_a_signal_handled_after_the_end_of_a_poll_does_not_prolong_the_wait():
    poll = _interrupt._POLL_SECONDS
    before = signal.signal(signal.SIGALRM, lambda *_: time.sleep(2 * poll))
    signal.setitimer(signal.ITIMER_REAL, 2.5 * poll)
    try:
        with pytest.raises(Abandoned, match="told to"):
            wait_for(lambda: time.sleep(20), Patience(lambda: "told to"))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_loop_keeps_the_callers_precision():
    with jax.enable_x64(True):
        target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
        guide = softcvi.guides.mean_field(target)
        result = softcvi.fit(
            jax.random.key(0), target, guide, steps=50, start=None, progress=False
        )
        assert result.posterior.guide.distribution.loc.dtype == jnp.float64


def test_ctrl_c_after_the_last_step_loses_nothing(quick, monkeypatch):
    from softcvi.fitting import _train

    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_train, "_better", pressed)
    result = quick()
    assert (result.status, result.steps) == ("interrupted", 300)
    assert "all steps done; interrupted before" in result.message


def test_ctrl_c_during_a_verdict_gives_back_what_was_fitted(target, monkeypatch):
    from softcvi.fitting import _begin, _result

    def two(*args, **kwargs):
        guides = (softcvi.guides.mean_field, softcvi.guides.full_rank)
        candidates = tuple(
            _begin.Candidate(lambda make=make: make(target), softcvi.SoftCVI())
            for make in guides
        )
        return _begin.Beginning(target, candidates, 0.0, None, "as given")

    pressed = []

    def judge(evidence):
        pressed.append(True)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        return softcvi.diagnostics.judge(evidence)

    monkeypatch.setattr(softcvi.fitting._fit, "suggested", two)
    monkeypatch.setattr(_result, "judge", judge)
    result = softcvi.fit(jax.random.key(0), target, steps=60, progress=False)
    assert (result.status, result.steps) == ("interrupted", 60)
    assert "interrupted before its verdict" in result.message
    assert not result.verdict.trusted  # asked again, it is made


class AtOnce(fitting.AbstractStoppingRule):
    follows_clock = True

    def reason(self, progress):
        return "it is time"


def test_little_is_evaluated_after_the_time_is_over():
    """A slow model took a thousand more evaluations to compare start and end."""
    calls = []

    def counted(x):
        calls.append(1)
        return np.float32(-0.5 * np.sum(np.asarray(x) ** 2))

    def log_prob(x):
        kind = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(counted, kind, x, vmap_method="sequential")

    target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    guide = softcvi.guides.mean_field(target)
    options = {"steps": 1000, "start": None, "progress": False, "stopping": AtOnce()}
    result = softcvi.fit(jax.random.key(0), target, guide, **options)
    assert result.status == "stopped"
    assert len(calls) <= 2 * result.steps * 8 + 100


def test_a_model_that_hangs_after_its_time_is_not_waited_for(monkeypatch):
    """Start and end of the fit are compared then."""
    monkeypatch.setattr(_train, "_COMPILING_SECONDS", 0.5)
    is_over, let_go = threading.Event(), threading.Event()

    class Over(AtOnce):
        def reason(self, progress):
            is_over.set()
            return "it is time"

    def density(x):
        if is_over.is_set():
            let_go.wait(60)
        return np.float32(-0.5 * np.sum(np.asarray(x) ** 2))

    def log_prob(x):
        kind = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(density, kind, x, vmap_method="sequential")

    target = softcvi.DensityTarget(log_prob, np.zeros(2, np.float32))
    guide = softcvi.guides.mean_field(target)
    options = {"steps": 1000, "start": None, "progress": False, "stopping": Over()}
    began = time.monotonic()
    result = softcvi.fit(jax.random.key(0), target, guide, **options)
    assert time.monotonic() - began < 40
    let_go.set()
    assert result.status == "stopped"
    assert "the model became too slow" in result.message


@pytest.mark.parametrize("kind", [SystemExit, StopIteration, MemoryError, KeyError])
def test_whatever_a_callback_raises_is_named(kind):
    def raising(x):
        raise kind("why")

    def log_prob(x):
        shape = jax.ShapeDtypeStruct(x.shape[:-1], x.dtype)
        return jax.pure_callback(raising, shape, x, vmap_method="broadcast_all")

    with pytest.raises(_interrupt.CallbackFailure) as failure:  # noqa: SIM117
        with _interrupt.callback_failures():
            jax.block_until_ready(jax.jit(log_prob)(jnp.zeros(2)))
    assert _interrupt.first_line(failure.value) == f"{kind.__name__}: {kind('why')}"
