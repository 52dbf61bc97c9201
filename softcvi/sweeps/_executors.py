"""Executors: where the batches of a sweep are run."""

import contextlib
import dataclasses
import multiprocessing
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from softcvi.fitting import AbstractReporter
from softcvi.sweeps._devices import accelerators, use_next

# A batch that takes its worker down this often is given up.
_ATTEMPTS = 3
# One process per core: more threads per process only get in each other's way.
THREAD_LIMITS = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a batch.

    Attributes:
        index: Which batch it was.
        value: What the function returned, or None.
        error: Why it failed, or None.

    Example:
        >>> from softcvi.sweeps import Outcome
        >>> Outcome(0, value=[1.0]).error is None
        True
    """

    index: int
    value: Any = None
    error: str | None = None


class AbstractExecutor:
    """Runs a function over batches, and says of each what became of it.

    Example:
        >>> from softcvi.sweeps import SerialExecutor
        >>> [outcome.value for outcome in SerialExecutor().run(len, ["ab", "c"])]
        [2, 1]
    """

    @abstractmethod
    def run(
        self, function: Callable[[Any], Any], batches: Sequence[Any]
    ) -> Iterator[Outcome]:
        """One outcome per batch, in the order in which they end."""

    def run_with_progress(
        self,
        function: Callable[[Any], Any],
        batches: Sequence[Sequence[Any]],
        reporter: AbstractReporter,
        name: str,
        done: int = 0,
    ) -> Generator[Outcome]:
        """The same, and tells a reporter how much of the batches is done.

        Args:
            function: Of a batch.
            batches: The batches.
            reporter: Who is told.
            name: What is run.
            done: How much was done before.
        """
        reporter.begin(name, done + sum(map(len, batches)))
        began, count = time.perf_counter(), done
        try:
            for outcome in self.run(function, batches):
                yield outcome
                count += len(batches[outcome.index])
                elapsed = max(time.perf_counter() - began, 1e-9)
                reporter.update(count, count / elapsed, {})
        finally:
            reporter.end()


class SerialExecutor(AbstractExecutor):
    """One batch after the other, in this process.

    Example:
        >>> from softcvi.sweeps import SerialExecutor
        >>> next(SerialExecutor().run(int, ["no number"])).error
        "ValueError: invalid literal for int() with base 10: 'no number'"
    """

    def run(self, function, batches):
        for index, batch in enumerate(batches):
            try:
                yield Outcome(index, function(batch))
            except Exception as error:
                yield Outcome(index, error=describe(error))


class ProcessExecutor(AbstractExecutor):
    """Several processes on this machine, each with one thread.

    A worker that dies (killed, out of memory) takes the whole pool down; the batches
    that had not ended are then run again in a new one.

    Args:
        workers: Number of processes; by default one for each GPU that JAX would use,
            which that process alone sees, or else for each core.

    Example:
        >>> from softcvi.sweeps import ProcessExecutor
        >>> ProcessExecutor(workers=2).workers
        2
    """

    def __init__(self, workers: int | None = None):
        self.devices = accelerators()
        self.workers = workers or len(self.devices) or os.cpu_count() or 1
        if self.workers < 1:
            raise ValueError(f"workers: must be at least 1; got {workers}.")

    def run(self, function, batches):
        attempts = dict.fromkeys(range(len(batches)), 0)
        while attempts:
            # After a crash one at a time, to tell the batch that crashes from others.
            crashed = any(attempts.values())
            chosen = sorted(attempts, key=lambda i: -attempts[i])
            chosen = chosen[:1] if crashed else chosen
            for index in chosen:
                attempts[index] += 1
            try:
                for outcome in self._run_once(function, batches, chosen):
                    del attempts[outcome.index]
                    yield outcome
            except BrokenProcessPool:
                for index in [i for i, n in attempts.items() if n >= _ATTEMPTS]:
                    del attempts[index]
                    yield Outcome(index, error=worker_died(_ATTEMPTS))

    def _run_once(self, function, batches, chosen) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        workers = min(self.workers, len(chosen))
        own: dict[str, Any] = {}
        if self.devices:
            devices = context.SimpleQueue()
            for i in range(workers):
                devices.put(self.devices[i % len(self.devices)])
            own = {"initializer": use_next, "initargs": (devices,)}
        pool = ProcessPoolExecutor(workers, context, **own)
        with _environment(THREAD_LIMITS), pool:
            futures = {pool.submit(function, batches[i]): i for i in chosen}
            for future in as_completed(futures):
                try:
                    yield Outcome(futures[future], future.result())
                except BrokenProcessPool:
                    raise
                except Exception as error:
                    yield Outcome(futures[future], error=describe(error))


def worker_died(times: int) -> str:
    """Why a batch was given up that takes its workers down."""
    return (
        f"its worker died {times} times (killed or out of memory): give workers more "
        "memory or use fewer of them, remove this record, and run the sweep again"
    )


def describe(error: BaseException) -> str:
    """The kind of an error and its first line."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables that children inherit before they import anything."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({n: v for n, v in values.items() if before[n] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
