"""What happens around the compiled loop: history, stopping, Ctrl-C, checkpoints."""

import io
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from rich.console import Console

import softcvi
from softcvi import fitting


class Interrupt(fitting.Silent):
    """Ctrl-C once so many steps are done."""

    def __init__(self, at):
        self.at = at

    def update(self, step, rate, numbers):
        if step >= self.at:
            raise KeyboardInterrupt


class Recorder(fitting.AbstractReporter):
    def __init__(self):
        self.calls = []

    def begin(self, description, total):
        self.calls.append(("begin", total))

    def update(self, step, rate, numbers):
        self.calls.append(("update", step, numbers))

    def end(self):
        self.calls.append(("end",))


@pytest.fixture(scope="module")
def whole(target, guide):
    """The run that others are compared with."""
    recorder = Recorder()
    result = softcvi.fit(
        jax.random.key(0), target, guide, steps=300, start=None, progress=recorder
    )
    return result, recorder.calls


def test_a_fit_says_what_it_did(whole):
    result, calls = whole
    assert result.status == "finished"
    assert result.steps == 300
    assert result.num_bad_densities == result.num_skipped_steps == 0
    assert result.seconds_compile > 0
    assert result.seconds_run > 0
    assert calls[0] == ("begin", 300)
    assert calls[-1] == ("end",)
    steps = [call[1] for call in calls[1:-1]]
    assert steps == sorted(steps)
    assert steps[-1] == 300
    assert set(calls[1][2]) == {"excess", "label ESS"}


def test_excess_falls_where_the_raw_loss_cannot(whole):
    history = whole[0].history
    assert history.step[-1] == 300
    assert history.step.shape == history.excess.shape == history.elbo.shape
    assert np.all(history.excess > -1e-6)
    assert history.excess[-30:].mean() < 0.2 * history.excess[:30].mean()
    assert np.all((history.label_ess >= 1) & (history.label_ess <= 8))
    assert history.elbo[-30:].mean() > history.elbo[:30].mean()


def test_the_same_key_gives_the_same_bits(whole, quick, same_bits):
    assert same_bits(whole[0], quick())
    assert not same_bits(whole[0], quick(key=1))


def test_ctrl_c_keeps_what_was_reached(quick, whole, same_bits):
    result = quick(progress=Interrupt(32))
    assert result.status == "interrupted"
    assert 32 <= result.steps < 300
    assert f"step {result.steps}" in result.message
    assert result.history.step[-1] == result.steps
    assert not same_bits(result, whole[0])
    assert np.all(np.isfinite(result.posterior.sample(jax.random.key(0), 10)["x"]))


def test_resuming_gives_the_same_bits(quick, whole, same_bits, tmp_path):
    path = tmp_path / "folder" / "fit.ckpt"
    first = quick(progress=Interrupt(32), checkpoint=path)
    assert first.status == "interrupted"
    again = quick(checkpoint=fitting.Checkpoint(path))
    assert again.status == "finished"
    assert same_bits(again, whole[0])
    np.testing.assert_array_equal(again.history.excess, whole[0].history.excess)
    # A finished run is read back as it is.
    assert same_bits(quick(checkpoint=path), whole[0])


def test_checkpoints_are_written_on_the_way(quick, tmp_path):
    path = tmp_path / "fit.ckpt"

    class Look(fitting.Silent):
        seen = False

        def update(self, step, rate, numbers):
            self.seen = self.seen or path.exists()

    look = Look()
    quick(progress=look, checkpoint=fitting.Checkpoint(path, every=0.0))
    assert look.seen
    assert [p.name for p in tmp_path.iterdir()] == ["fit.ckpt"]


def test_checkpoints_of_other_runs_and_damaged_ones_are_refused(
    quick, make_target, tmp_path
):
    path = tmp_path / "fit.ckpt"
    quick(progress=Interrupt(32), checkpoint=path)
    others = [
        {"key": 1},
        {"steps": 400},
        {"target": make_target(2.0)},
        {"objective": softcvi.SoftCVI(negative=softcvi.TemperedProposal(1.0))},
        {"learning_rate": 0.02},
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"checkpoint: .* belongs to another fit"):
            quick(checkpoint=path, **other)
    content = path.read_bytes()
    for damaged in (content[:100], b"", b"not a checkpoint", content[:-50]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checkpoint: .* is damaged"):
            quick(checkpoint=path)


def test_time_and_evaluations_stop_a_run(quick):
    start = time.monotonic()
    result = quick(steps=10_000_000, stopping=fitting.TimeLimit(0.3))
    assert result.status == "stopped"
    assert "time limit of 0.3 s" in result.message
    assert 0 < result.steps < 10_000_000
    assert time.monotonic() - start < 60

    result = quick(steps=10_000, stopping=fitting.EvaluationLimit(800))
    assert result.steps == 100  # 8 particles a step


def test_a_plateau_of_excess_stops_a_run(quick):
    settled = quick(steps=100_000, stopping=fitting.Plateau(window=0.1))
    assert settled.status == "stopped"
    assert "excess has settled" in settled.message
    assert settled.steps < 100_000


def test_a_plateau_takes_noise_into_account():
    rule = fitting.Plateau(window=0.2, threshold=1.0)
    steps = np.arange(1.0, 101.0)
    noise = np.random.default_rng(0).normal(size=100)

    def reason(excess):
        history = fitting.History(steps, excess, excess, excess)
        return rule.reason(fitting.Progress(100, 100, 1.0, 800, history))

    assert reason(2.0 - 0.015 * steps + 0.02 * noise) is None
    assert reason(2.0 + 0.2 * noise) is not None
    assert reason(np.full(100, np.nan)) is None


def test_optax_and_the_papers_optimizer_are_accepted(quick, whole):
    for optimizer in (optax.sgd(0.05), fitting.paper_optimizer(1e-2)):
        result = quick(optimizer=optimizer, steps=600)
        draws = result.posterior.sample(jax.random.key(0), 1000)["x"]
        assert abs(float(jnp.mean(draws)) - 1.0) < 0.2


def test_bars_and_lines_report(quick):
    stream = io.StringIO()
    quick(progress=fitting.Lines(stream, every=0.0))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "fit: started"
    assert "step 300/300" in lines[-1]
    assert "label ESS" in lines[-1]
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    quick(progress=fitting.Bar(console))
    assert "300/300" in console.file.getvalue()


def test_the_verdict_is_measured_once(quick, monkeypatch):
    from softcvi.fitting import _result

    calls = []
    examine = _result.examine
    monkeypatch.setattr(
        _result, "examine", lambda *args: calls.append(1) or examine(*args)
    )
    result = softcvi.fit(
        jax.random.key(0),
        softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2)),
        steps=20,
        progress=False,
    )
    assert result.seconds_start > 0
    assert result.verdict.level in result.summary()
    assert len(calls) == 1


def test_the_summary_names_verdict_parameters_and_times(whole):
    text = whole[0].summary()
    for part in ("verdict", "label ESS", "compilation", "x[0]", "x[1]", "q95"):
        assert part in text
    assert whole[0].verdict.khat < 0.5


def test_lines_do_not_call_done_what_was_not():
    stream = io.StringIO()
    reporter = softcvi.fitting.Lines(stream)
    for steps in ((), (4,), (4, 10)):
        reporter.begin("fit", 10)
        for step in steps:
            reporter.update(step, 5.0, {})
        reporter.end()
    lines = stream.getvalue().splitlines()
    assert lines[1] == "fit: ended before the first step"
    assert lines[3].startswith("fit: stopped at step 4/10")
    assert lines[5].startswith("fit: done step 10/10")
