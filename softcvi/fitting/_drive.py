"""The host side of a fit: chunks, and what happens between them."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.fitting._checkpoint import Checkpoint
from softcvi.fitting._history import History
from softcvi.fitting._interrupt import Interruptible
from softcvi.fitting._loop import LoopState, Run
from softcvi.fitting._progress import AbstractReporter
from softcvi.fitting._stopping import AbstractStoppingRule, Progress

_CHUNK_SECONDS = 0.25
_FIRST_CHUNK = 32


class CallbackFailure(RuntimeError):
    """A function called back from inside the compiled loop raised."""


class Outcome(eqx.Module):
    """How the loop ended.

    Attributes:
        state: Last state.
        steps: Steps done.
        status: ``"finished"``, ``"stopped"``, ``"interrupted"`` or ``"failed"``.
        message: In words.
        seconds_compile: Time of the first call, which compiles and runs no step.
        seconds_run: Time of the loop.
        error: The exception of a failed run.
    """

    state: LoopState
    steps: int
    status: str
    message: str
    seconds_compile: float
    seconds_run: float
    error: Exception | None = None


def drive(
    advance: Callable[[LoopState, jax.Array, jax.Array], LoopState],
    state: LoopState,
    run: Run,
    *,
    steps: int,
    record_every: int,
    evaluations_per_step: int,
    stopping: AbstractStoppingRule,
    reporter: AbstractReporter,
    checkpoint: Checkpoint | None = None,
    description: str = "fit",
    on_first_chunk: Callable[[LoopState, int], None] | None = None,
) -> Outcome:
    """Run a compiled loop in chunks of about a quarter of a second.

    Chunks do not change the result: the randomness of a step depends on its number.
    """
    reporter.begin(description, steps)
    step, status, message, error = 0, "finished", "all steps done", None
    compiled, began = 0.0, time.perf_counter()
    try:
        with Interruptible() as interruptible:
            if checkpoint is not None:
                stored = checkpoint.read(state, run)
                state, step = stored if stored is not None else (state, step)
            state = _call(advance, state, step, step)
            compiled = time.perf_counter() - began
            began, chunk, first = time.perf_counter(), _FIRST_CHUNK, step == 0
            while step < steps:
                interruptible.check()
                stop = min(steps, step + chunk)
                chunk_began = time.perf_counter()
                size = stop - step
                # One statement: Ctrl-C must not come between a state and its step.
                state, step = _call(advance, state, step, stop), stop
                rate = size / max(time.perf_counter() - chunk_began, 1e-9)
                if first and on_first_chunk is not None:
                    on_first_chunk(state, step)
                first = False
                chunk = int(np.clip(rate * _CHUNK_SECONDS, 1, 8 * chunk))
                elapsed = time.perf_counter() - began
                history = _history(state, record_every, step)
                reporter.update(step, step / elapsed, _shown(history))
                if checkpoint is not None and checkpoint.due():
                    checkpoint.write(state, step, run)
                reason = stopping.reason(
                    Progress(step, steps, elapsed, step * evaluations_per_step, history)
                )
                if reason is not None and step < steps:
                    status, message = "stopped", f"stopped at step {step}: {reason}"
                    break
    except KeyboardInterrupt:
        status = "interrupted"
        message = f"interrupted at step {step}: what was reached is kept"
    except (jax.errors.JaxRuntimeError, CallbackFailure) as failure:
        error, status = failure, "failed"
        message = f"the model failed at step {step}: {_first_line(failure)}"
    finally:
        reporter.end()
    if checkpoint is not None and step:
        checkpoint.write(state, step, run)
    seconds_run = time.perf_counter() - began
    return Outcome(state, step, status, message, compiled, seconds_run, error)


def _call(advance, state: LoopState, start: int, stop: int) -> LoopState:
    bounds = jnp.asarray(start, jnp.int32), jnp.asarray(stop, jnp.int32)
    try:
        return jax.block_until_ready(advance(state, *bounds))
    except ValueError as error:
        # What a callback raises on the calling thread arrives as a ValueError.
        if "CpuCallback" not in str(error):
            raise
        raise CallbackFailure(str(error)) from error


def _history(state: LoopState, record_every: int, step: int) -> History:
    sums = np.asarray(state.history)
    if sums.ndim == 3:
        sums = np.where(np.isfinite(sums), sums, 0.0).sum(axis=0)
    return History.from_sums(sums, record_every, step)


def _shown(history: History) -> dict[str, float]:
    last = history.last(0.02)
    return {"excess": last["excess"], "label ESS": last["label_ess"]}


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The line of the exception raised inside a callback says most.
    for line in reversed(lines):
        if "Error" in line or "Exception" in line:
            return line
    return lines[0] if lines else type(error).__name__
