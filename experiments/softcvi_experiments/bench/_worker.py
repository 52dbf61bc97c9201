"""One measurement in a process of its own, started by path.

The report is a line of JSON on standard output. Reading the data and importing the
benchmarks themselves is set apart as ``seconds_setup``.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def _nothing() -> dict[str, Any]:
    return {}


def _first_step(task: str) -> dict[str, Any]:
    """Seconds from the end of the import to the end of the first step."""
    import jax

    import softcvi

    began = time.perf_counter()
    softcvi.enable_compilation_cache()
    counted = time.perf_counter() - began
    from softcvi_experiments.bench._overhead import paper_problem

    target, guide, optimizer = paper_problem(task)
    ready = time.perf_counter()
    result = softcvi.fit(
        jax.random.key(0), target, guide, steps=1, optimizer=optimizer, start=None,
        progress=False,
    )  # fmt: skip
    return {
        "seconds_setup": ready - began - counted,
        "seconds_compile": result.seconds_compile,
        "seconds_to_first_step": counted + time.perf_counter() - ready,
    }


def _memory(what: str, size: str) -> dict[str, Any]:
    from softcvi_experiments.bench._memory import use_memory

    return use_memory(what, int(size))


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "nothing": _nothing,
    "first_step": _first_step,
    "memory": _memory,
}


def main() -> None:
    """Run the measurement named on the command line and print its report."""
    what, *args = sys.argv[1:]
    report = MEASUREMENTS[what](*args)
    print(json.dumps({"what": what, **report}), flush=True)


if __name__ == "__main__":
    main()
