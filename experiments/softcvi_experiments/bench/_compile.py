"""``--suite compile``: imports, cold compilation, and the second process."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from softcvi_experiments.bench._child import run_child, run_code
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._store import Result
from softcvi_experiments.tasks import PAPER_TASKS

PARTS = ("imports", "tasks")


def bench_compile(options: Options) -> list[Path]:
    """Time imports and first steps in fresh processes.

    Args:
        options: Settings of the run.

    Returns:
        The files written: result, table and plot.

    Example:
        >>> bench_compile(Options(Path("bench"), parts=("speed",)))
        Traceback (most recent call last):
        ...
        ValueError: parts: this suite has no 'speed'; it has imports, tasks
    """
    options.check_parts(PARTS)
    result = Result("compile", options)
    if options.wants("imports"):
        result.add("imports", _measure_imports(options))
    if options.wants("tasks"):
        names = PAPER_TASKS[1:2] if options.quick else PAPER_TASKS
        result.add("tasks", [_measure_task(name, options) for name in names])
    return result.finish()


def _measure_imports(options: Options) -> dict[str, Any]:
    statements = {
        "reference": "import jax, equinox, flowjax",
        # Names are loaded on demand: the import alone loads nothing.
        "softcvi": "import softcvi; softcvi.fit",
    }
    times: dict[str, list[float]] = {name: [] for name in statements}
    for statement in statements.values():
        run_code(statement)  # compiles what was never imported before to bytecode
    for _ in range(1 if options.quick else options.repeats):
        for name, statement in statements.items():
            times[name].append(run_code(statement))
    medians = {name: float(np.median(values)) for name, values in times.items()}
    ratio = medians["softcvi"] / medians["reference"]
    options.say(f"import softcvi: {ratio:.2f} times import jax, equinox, flowjax")
    return {**medians, "ratio": ratio, "limit": 1.5}


def _measure_task(name: str, options: Options) -> dict[str, Any]:
    repeats = 1 if options.quick else min(3, options.repeats)
    cold = [run_child("first_step", name) for _ in range(repeats)]
    with tempfile.TemporaryDirectory() as folder:
        run_child("first_step", name, cache=Path(folder))
        warm = [
            run_child("first_step", name, cache=Path(folder)) for _ in range(repeats)
        ]
    row: dict[str, Any] = {"task": name}
    row |= {"cold": _medians(cold), "warm": _medians(warm)}
    options.say(
        f"compile, {name}: {row['cold']['seconds_compile']:.2f} s cold, first step "
        f"{row['warm']['seconds_to_first_step']:.2f} s after the import in the second "
        "process"
    )
    return row


def _medians(reports: list[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in reports[0] if name.startswith("seconds_")]
    return {name: float(np.median([r[name] for r in reports])) for name in names}
