"""A ladder that was interrupted goes on where it was, with the same answer."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import softcvi
from softcvi.fitting import AbstractReporter, Checkpoint, Silent
from softcvi.ladder import AbstractRung


class Trained(AbstractRung):
    """A guide, never good enough."""

    family: str = eqx.field(static=True)

    def attempt(self, state):
        guide = getattr(softcvi.guides, self.family)(state.target)
        attempt = state.judged(
            self.family,
            lambda: softcvi.fit(
                state.key,
                state.target,
                guide,
                steps=state.steps,
                start=None,
                progress=state.reporter,
                checkpoint=state.checkpoint,
            ),
        )
        return dataclasses.replace(attempt, accepted=False)


class Counting(AbstractReporter):
    """Counts loops that ran, and interrupts one of them after its first chunk."""

    def __init__(self, interrupted=None):
        self.loops, self.ran, self._interrupted = 0, [], interrupted

    def begin(self, description, total):
        self.loops += 1

    def update(self, step, rate, shown):
        if self.loops not in self.ran:
            self.ran.append(self.loops)
        if self.loops == self._interrupted:
            raise KeyboardInterrupt

    def end(self):
        pass


@pytest.fixture(scope="module")
def climb():
    rungs = (Trained("mean_field"), Trained("full_rank"))

    def run(scale=1.0, progress=None, **kwargs):
        target = softcvi.DensityTarget(
            lambda x: -0.5 * jnp.sum(x**2) - 0.4 * scale * x[0] * x[1], jnp.zeros(2)
        )
        reporter = Silent() if progress is None else progress
        return softcvi.fit_until(
            jax.random.key(0), target, rungs=rungs, steps=300, progress=reporter,
            **kwargs,
        )  # fmt: skip

    return run


def test_an_interrupted_ladder_resumes_after_the_finished_rungs(
    climb, tmp_path, same_bits
):
    path = tmp_path / "ladder.checkpoint"
    alone = climb()
    cut = climb(progress=Counting(interrupted=2), checkpoint=path)
    assert cut.attempts[-1].answer.status == "interrupted"
    assert 0 < cut.attempts[-1].answer.steps < 300
    counting = Counting()
    again = climb(progress=counting, checkpoint=path)
    assert counting.ran == [2]  # the first guide was not trained again
    assert len(again.attempts) == len(alone.attempts) == 2
    for one, other in zip(alone.attempts, again.attempts, strict=True):
        assert same_bits(one.answer, other.answer)
        assert one.answer.steps == other.answer.steps
    counting = Counting()
    climb(progress=counting, checkpoint=path)
    assert counting.ran == []


def test_checkpoints_of_another_ladder_and_damaged_ones_are_refused(climb, tmp_path):
    """Not recorded as rungs that failed: the file must not be written over."""
    path = tmp_path / "ladder.checkpoint"
    climb(checkpoint=Checkpoint(path, every=0.0))
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint: .* belongs to another fit"):
        climb(scale=2.0, checkpoint=path)
    assert path.read_bytes() == content
    path.write_bytes(content[:-200])
    with pytest.raises(ValueError, match=r"checkpoint: .* is damaged"):
        climb(checkpoint=path)


class Pressed(AbstractRung):
    """Ctrl-C comes where no loop remembers it, as in chains."""

    def attempt(self, state):
        raise KeyboardInterrupt


def test_ctrl_c_in_a_rung_keeps_what_the_others_reached(target):
    def run(*rungs):
        return softcvi.fit_until(
            jax.random.key(0), target, rungs=rungs, steps=60, progress=False
        )

    answer = run(Trained("mean_field"), Pressed(), Trained("full_rank"))
    assert [a.interrupted for a in answer.attempts] == [False, True]
    assert answer.status == "interrupted"
    assert answer.sample(jax.random.key(1), 10)["x"].shape == (10, 2)
    with pytest.raises(KeyboardInterrupt):
        run(Pressed(), Trained("mean_field"))
