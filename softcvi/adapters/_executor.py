"""Evaluations on an executor: in parallel, failures and time-outs are no density."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, TimeoutError
from typing import Any

import numpy as np


class Parallel:
    """A function of many particles that evaluates them by an executor, one by one.

    Failures and time-outs have no density: a log density of minus infinity, so that
    their labels are zero and the others compete without them.

    Args:
        fn: Function of one particle; for processes it must be possible to pickle it.
        executor: With ``submit``, as those of ``concurrent.futures``, a Dask client or
            an MPI pool.
        timeout: Seconds until an evaluation counts as failed; None waits for all.
        failures: Where to count what failed; a dictionary by the type of failure.
    """

    def __init__(
        self,
        fn: Callable,
        executor: Executor,
        timeout: float | None,
        failures: dict[str, int],
    ):
        self.fn = fn
        self.executor = executor
        self.timeout = timeout
        self.failures = failures

    def __call__(self, particles: list[Any]) -> np.ndarray:
        """Log densities of particles, in their order."""
        futures = [self.executor.submit(self.fn, particle) for particle in particles]
        began = time.monotonic()
        return np.array([self._value(future, began) for future in futures])

    def _value(self, future: Any, began: float) -> float:
        left = None
        if self.timeout is not None:
            # All have been running since the first was asked for.
            left = max(self.timeout - (time.monotonic() - began), 0.0)
        try:
            return float(future.result(timeout=left))
        except TimeoutError:
            future.cancel()
            self._count("time-out")
        except Exception as error:
            self._count(type(error).__name__)
        return -np.inf

    def _count(self, kind: str) -> None:
        self.failures[kind] = self.failures.get(kind, 0) + 1
