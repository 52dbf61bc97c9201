"""The host side of a fit: chunks, and what happens between them."""

import dataclasses
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from softcvi._compile import as_array, is_compiling
from softcvi.fitting._checkpoint import CheckpointFile, Stored
from softcvi.fitting._devices import (
    agreed,
    are_many,
    ended_elsewhere,
    is_first,
    shared,
)
from softcvi.fitting._fingerprint import fingerprint
from softcvi.fitting._history import History
from softcvi.fitting._interrupt import (
    Abandoned,
    CallbackFailure,
    Interruptible,
    Patience,
    callback_failures,
    first_line,
    wait_for,
)
from softcvi.fitting._loop import LoopState, Run
from softcvi.fitting._progress import AbstractReporter
from softcvi.fitting._stopping import AbstractStoppingRule, Never, Progress

_CHUNK_SECONDS = 0.25
# A loop that is compiled sooner came from the cache.
_CACHED_SECONDS = 0.1
# After so many steps their rate is known, and the next ones take as long as it takes
# to trace what the verdict needs.
_TIMED_STEPS = 500
_TRACING_SECONDS = 1.0
# How often a rule that looks at the history is asked: at the same steps in equal runs.
_TIMES_ASKED = 64
# A fit ends after so many steps without a single usable one.
_STEPS_BEFORE_GIVING_UP = 32

Advance = Callable[[LoopState, jax.Array, jax.Array], LoopState]


@dataclasses.dataclass
class Host:
    """What the host does between chunks, over all guides that one fit tries.

    Attributes:
        stopping: When to stop.
        reporter: Who is told.
        checkpoint: Where states are kept, if anywhere.
        description: Shown with the progress.
        seconds: Time of the loops so far.
        evaluations: Evaluations of the log density so far.
    """

    stopping: AbstractStoppingRule
    reporter: AbstractReporter
    checkpoint: CheckpointFile | None = None
    description: str = "fit"
    seconds: float = 0.0
    evaluations: int = 0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the loop ended.

    Attributes:
        state: Last state.
        steps: Steps done.
        status: ``"finished"``, ``"stopped"``, ``"interrupted"`` or ``"failed"``.
        message: In words.
        seconds_compile: Time of the first call, which compiles and runs no step.
        seconds_run: Time of the loop.
        error: The exception of a failed run.
        abandoned: Whether the model did not come back from its last call.
    """

    state: LoopState
    steps: int
    status: str
    message: str
    seconds_compile: float
    seconds_run: float
    error: Exception | None = None
    abandoned: bool = False


def drive(
    advance: Advance,
    state: LoopState,
    run: Run,
    host: Host,
    *,
    evaluations_per_step: int,
    refuse: Callable[[], str],
    prepare: Callable[[], None],
    prepare_verdict: Callable[[], None],
) -> Outcome:
    """Run a compiled loop in chunks of about a quarter of a second.

    Chunks do not change the result: the randomness of a step depends on its number,
    and sums of the history are made in the order of the steps.

    Args:
        advance: The compiled loop.
        state: The first state.
        run: What stays the same.
        host: Stopping rule, reporter and checkpoint.
        evaluations_per_step: Evaluations of the log density in a step.
        refuse: Explains why no step at the start could be used.
        prepare: Begins to compile the loop.
        prepare_verdict: Begins to compile what is needed after it.
    """
    loop = _Loop(advance, state, run, host, evaluations_per_step, prepare_verdict)
    status, message, error, abandoned = "finished", "all steps done", None, False
    host.reporter.begin(host.description, loop.total)
    try:
        with loop.interruptible:
            prepare()
            loop.prepare_verdict_early()
            loop.compile()
            reason = loop.reason_to_stop() if host.seconds else None
            while loop.step < loop.total and reason is None:
                loop.interruptible.check()
                loop.run_chunk()
                loop.refuse_if_unusable(refuse)
                loop.report()
                reason = loop.reason_to_stop()
            if reason is not None and loop.step < loop.total:
                status, message = "stopped", f"stopped at step {loop.step}: {reason}"
    except Abandoned as failure:
        status = "interrupted" if loop.interruptible.presses else "stopped"
        message = (
            f"{status} at step {loop.step}: {failure}; the model did not return from "
            "the steps after it"
        )
        abandoned = True
    except KeyboardInterrupt:
        if loop.interruptible.presses > 1:
            raise
        status = "interrupted"
        message = f"interrupted at step {loop.step}: what was reached is kept"
    except (jax.errors.JaxRuntimeError, CallbackFailure) as failure:
        error, status = failure, "failed"
        message = f"the model failed at step {loop.step}: {first_line(failure)}"
        if are_many():
            message = ended_elsewhere(loop.step, first_line(failure))
    finally:
        host.reporter.end()
    loop.keep()
    seconds = loop.seconds
    host.seconds += seconds
    host.evaluations += loop.step * evaluations_per_step
    return Outcome(
        loop.state,
        loop.step,
        status,
        message,
        loop.seconds_compile,
        seconds,
        error,
        abandoned,
    )


class _Loop:
    """One run of a compiled loop: where it is, and how long its steps take."""

    def __init__(
        self,
        advance: Advance,
        state: LoopState,
        run: Run,
        host: Host,
        evaluations_per_step: int,
        prepare_verdict: Callable[[], None],
    ):
        self.state, self.step, self.total = state, 0, int(run.total_steps)
        self.interruptible = Interruptible()
        self.seconds_compile = 0.0
        self._advance, self._run, self._host = advance, run, host
        self._evaluations_per_step = evaluations_per_step
        self._record_every = int(run.record_every)
        # Rules that do not follow the clock are asked at the same steps in equal runs.
        by_clock = host.stopping.follows_clock
        self._stride = self.total if by_clock else -(-self.total // _TIMES_ASKED)
        self._began = time.perf_counter()
        self._chunk, self._rate = 1, np.inf
        self._first = self._written = 0
        self._identity = ""
        self._elbo_at_first: float | None = None
        self._checked = False
        self._prepare_verdict: Callable[[], None] | None = prepare_verdict

    @property
    def seconds(self) -> float:
        """Time of the loop so far."""
        return time.perf_counter() - self._began

    def compile(self) -> None:
        """Read what a checkpoint has, and compile.

        On this thread: settings that a model finds there while it is traced hold.
        """
        checkpoint, begin = self._host.checkpoint, self.state
        if checkpoint is not None:
            self._identity = fingerprint(self._advance, self.state, self._run)
            stored = None
            if is_first():
                stored = checkpoint.read(self.state, self._identity, self.total)
            if agreed(stored is not None):
                if stored is None:
                    stored = Stored(self.state, 0, None)
                self._elbo_at_first = stored.first
                self.state, self.step = shared(stored.state), agreed(stored.step)
                self._written = self._first = self.step
        self.state = _call(self._advance, self.state, self.step, self.step)
        self.seconds_compile = self.seconds
        self._began = time.perf_counter()
        self._read_history()
        if checkpoint is not None and not are_many():
            checkpoint.refuse_another(self._is_continued(begin))

    def _is_continued(self, begin: LoopState) -> bool:
        """Whether the first step has the ELBO that it had, as far as that can be said.

        The program does not show what a Python function or a Stan program computes that
        it calls back. A log density that differs from itself is not compared.
        """
        before = self._elbo_at_first
        if before is None:
            return True
        found = self._repeated_elbo(begin)
        return _are_close(found, before) or not _are_close(
            found, self._repeated_elbo(begin)
        )

    def _repeated_elbo(self, begin: LoopState) -> float:
        patience = Patience(self._why_not_to_wait, 0.0)
        return _elbo_of_first_step(
            wait_for(lambda: _call(self._advance, begin, 0, 1), patience)
        )

    def prepare_verdict_early(self) -> None:
        """Use the time in which the loop is compiled, where it takes any.

        Otherwise the time in which it runs is used, unless that time is limited.
        """
        is_limited = not isinstance(self._host.stopping, Never) or are_many()
        if is_limited or is_compiling(_CACHED_SECONDS):
            self._take_preparation()()

    def run_chunk(self) -> None:
        """Some steps, as many as take a quarter of a second at the rate so far."""
        meanwhile, size = _nothing, self._chunk
        is_timed = self.step - self._first >= _TIMED_STEPS
        if self._prepare_verdict is not None and is_timed:
            meanwhile = self._take_preparation()
            size = max(size, int(self._rate * _TRACING_SECONDS))
        next_question = (self.step // self._stride + 1) * self._stride
        stop = min(self.total, self.step + size, next_question)
        began, size, work = time.perf_counter(), stop - self.step, self._work(stop)
        patience = Patience(self._why_not_to_wait, 2 * size / self._rate)
        # One statement: Ctrl-C must not come between a state and its step.
        (self.state, ended), self.step = wait_for(work, patience, meanwhile), stop
        if self.step == 1:
            self._elbo_at_first = _elbo_of_first_step(self.state)
        self._rate = size / max(ended - began, 1e-9)
        if meanwhile is not _nothing:
            late = time.perf_counter() - ended
            self._began += late
            self.seconds_compile += late
        wanted = self._rate * _CHUNK_SECONDS
        self._chunk = agreed(np.clip(wanted, 1, 8 * self._chunk))
        self._read_history()

    def refuse_if_unusable(self, refuse: Callable[[], str]) -> None:
        """Raise if not a single step at the beginning could be used."""
        if not self._checked and self.step >= min(_STEPS_BEFORE_GIVING_UP, self.total):
            self._checked = True
            if self.state.num_usable == 0:
                raise ValueError(refuse())

    def report(self) -> None:
        """Tell the reporter, and keep the state if it is time to."""
        last = self._history.last(0.02)
        shown = {"excess": last["excess"], "label ESS": last["label_ess"]}
        self._host.reporter.update(self.step, self.step / self.seconds, shown)
        if self._host.checkpoint is not None and self._host.checkpoint.due():
            self.keep()

    def keep(self) -> None:
        """Write the state to the checkpoint, if there is one and it is behind."""
        checkpoint = self._host.checkpoint if is_first() else None
        if checkpoint is not None and self.step > self._written:
            stored = Stored(self.state, self.step, self._elbo_at_first)
            checkpoint.write(stored, self._identity)
            self._written = self.step

    def reason_to_stop(self) -> str | None:
        """What the stopping rule says, at the steps at which it is asked."""
        reason = None
        if self._host.stopping.follows_clock or self.step % self._stride == 0:
            reason = self._host.stopping.reason(self._progress())
        if agreed(reason is not None):
            return reason or "the first process stopped"
        return None

    def _take_preparation(self) -> Callable[[], None]:
        preparation, self._prepare_verdict = self._prepare_verdict, None
        return preparation or _nothing

    def _why_not_to_wait(self) -> str | None:
        if self.interruptible.presses > 1:
            raise KeyboardInterrupt
        if self.interruptible.presses:
            return "Ctrl-C"
        if are_many():
            return None  # they go on together, or not at all
        rule = self._host.stopping
        return rule.reason(self._progress()) if rule.follows_clock else None

    def _work(self, stop: int) -> Callable[[], tuple[LoopState, float]]:
        advance, state, step = self._advance, self.state, self.step
        return lambda: (_call(advance, state, step, stop), time.perf_counter())

    def _progress(self) -> Progress:
        evaluations = self.step * self._evaluations_per_step
        return Progress(
            self.step,
            self.total,
            self._host.seconds + self.seconds,
            self._host.evaluations + evaluations,
            self._history,
        )

    def _read_history(self) -> None:
        sums = np.asarray(self.state.history)
        if sums.ndim == 3:
            sums = np.where(np.isfinite(sums), sums, 0.0).sum(axis=0)
        self._history = History.from_sums(sums, self._record_every, self.step)


def _elbo_of_first_step(state: LoopState) -> float:
    """ELBO after one step, averaged over the fits of a batch."""
    return float(np.mean(np.asarray(state.history, np.float64)[..., 0, 2]))


def _are_close(one: float, other: float) -> bool:
    """Equal but for how processors round; far closer than those of other data."""
    return bool(np.isclose(one, other, rtol=1e-5, atol=1e-3, equal_nan=True))


def _nothing() -> None:
    """Nothing to do meanwhile."""


def _call(advance: Advance, state: LoopState, start: int, stop: int) -> LoopState:
    bounds = as_array(start, jnp.int32), as_array(stop, jnp.int32)
    with callback_failures():
        return jax.block_until_ready(advance(state, *bounds))
