"""Stop watches: medians of repeated runs, and the cost of a step."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import jax
import numpy as np

_LEAST_REPEATS = 3
_PATIENCE_SECONDS = 20.0


def seconds_of(call: Callable[[], object]) -> float:
    """Wall time of one call.

    Example:
        >>> seconds_of(lambda: None) < 1.0
        True
    """
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def median_seconds(calls: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median wall time of each call, interleaved so that machine load affects all.

    Slow calls are repeated less often, but three times at least if so many are asked
    for.

    Args:
        calls: What to time.
        repeats: How often.

    Example:
        >>> len(median_seconds([lambda: None, lambda: None], 3))
        2
    """
    times: list[list[float]] = [[] for _ in calls]
    began = time.perf_counter()
    for done in range(repeats):
        late = time.perf_counter() - began > _PATIENCE_SECONDS
        if late and done >= _LEAST_REPEATS:
            break
        for taken, call in zip(times, calls, strict=True):
            taken.append(seconds_of(call))
    return [float(np.median(taken)) for taken in times]


def seconds_a_step(
    run: Callable[[int], object], short: int, long: int, repeats: int
) -> float:
    """Cost of a step: the slope between two lengths, free of what a call costs once.

    Args:
        run: Function of the number of steps; compiled before the watch starts.
        short: The smaller number of steps.
        long: The larger one.
        repeats: Repetitions of each.

    Example:
        >>> import time
        >>> 5e-5 < seconds_a_step(lambda n: time.sleep(n * 1e-4), 10, 110, 3) < 1e-3
        True
    """
    run(short)
    run(long)
    low, high = median_seconds([lambda: run(short), lambda: run(long)], repeats)
    # Where noise hides the slope, the whole call is an upper bound.
    return (high - low) / (long - short) if high > low else high / long


@contextlib.contextmanager
def measuring() -> Iterator[None]:
    """Compile everything anew, and leave accelerators' memory to child processes.

    Example:
        >>> import jax
        >>> with measuring():
        ...     jax.config.jax_enable_compilation_cache
        False
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Let progress bars draw into nothing: they cost what they cost on a terminal.

    Example:
        >>> import sys
        >>> with muted():
        ...     print("a bar", file=sys.stderr)
    """
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield
