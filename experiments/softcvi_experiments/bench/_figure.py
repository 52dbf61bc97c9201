"""``--suite figure``: what the paper's main figure costs, fit by fit and at once."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from softcvi_experiments._methods import PAPER_METHODS
from softcvi_experiments._run import fit_runs
from softcvi_experiments._settings import Settings
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._overhead import paper_problem
from softcvi_experiments.bench._store import Result
from softcvi_experiments.bench._timing import measuring
from softcvi_experiments.references import BuiltinReferences
from softcvi_experiments.tasks import PAPER_TASKS

PARTS = ("one", "many")
FIGURE_STEPS = 50_000
_PROBE_STEPS = 64


def bench_figure(options: Options) -> list[Path]:
    """Microseconds per step of one fit and of many, and the whole figure's time.

    The whole figure is 4 tasks x 4 methods x ``options.fits`` runs x 50,000 steps; its
    time is the sum of compilations and steps, or measured with ``options.full``.

    Args:
        options: Settings of the run.

    Returns:
        The files written: result, table and plot.

    Example:
        >>> bench_figure(Options(Path("bench"), parts=("speed",)))
        Traceback (most recent call last):
        ...
        ValueError: parts: this suite has no 'speed'; it has one, many
    """
    options.check_parts(PARTS)
    result = Result("figure", options)
    tasks = PAPER_TASKS[1:2] if options.quick else PAPER_TASKS
    methods = PAPER_METHODS[:1] if options.quick else PAPER_METHODS
    with measuring():
        if options.wants("one"):
            result.add("one", [_measure_one(name, options) for name in tasks])
        if options.wants("many"):
            rows = []
            began = time.perf_counter()
            for name in tasks:
                for method in methods:
                    rows.append(_measure_many(name, method, options))
                    result.add("many", _summed(rows, options, began))
    return result.finish()


def _measure_one(name: str, options: Options) -> dict[str, Any]:
    import jax

    import softcvi

    target, guide, optimizer = paper_problem(name)

    def fit(steps: int):
        return softcvi.fit(
            jax.random.key(0), target, guide, steps=steps, optimizer=optimizer,
            start=None, progress=False,
        )  # fmt: skip

    first = fit(_PROBE_STEPS)
    rate = max(fit(_PROBE_STEPS).seconds_run, 1e-6) / _PROBE_STEPS
    steps = _steps_for(rate, 0.02 if options.quick else 1.0)
    repeats = 1 if options.quick else options.repeats
    seconds = float(np.median([fit(steps).seconds_run for _ in range(repeats)]))
    row = {
        "task": name,
        "us_a_step": 1e6 * seconds / steps,
        "seconds_compile": first.seconds_compile,
        "steps": steps,
    }
    options.say(f"one fit, {name}: {row['us_a_step']:.1f} us per step")
    return row


def _measure_many(name: str, method: str, options: Options) -> dict[str, Any]:
    source = BuiltinReferences()
    fits = 2 if options.quick else options.fits

    def fit(steps: int):
        settings = Settings(steps=steps)
        return fit_runs(
            name, method, list(range(fits)), settings, source, progress=False
        ).results[0]

    began = time.perf_counter()
    if options.full:
        steps = 20 if options.quick else FIGURE_STEPS
        first = last = fit(steps)
    else:
        first = fit(_PROBE_STEPS)
        rate = max(first.seconds_run, 1e-6) / _PROBE_STEPS
        steps = _steps_for(rate, 0.02 if options.quick else 2.0)
        last = fit(steps)
    row = {
        "task": name,
        "method": method,
        "fits": fits,
        "steps": steps,
        "us_a_step": 1e6 * last.seconds_run / steps,
        "seconds_compile": first.seconds_compile + first.seconds_start,
        "seconds": time.perf_counter() - began,
    }
    options.say(f"{fits} fits, {name}, {method}: {row['us_a_step']:.1f} us per step")
    return row


def _steps_for(rate: float, seconds: float) -> int:
    return int(np.clip(seconds / rate, _PROBE_STEPS, FIGURE_STEPS))


def _summed(rows: list[dict], options: Options, began: float) -> dict[str, Any]:
    if options.full:
        total = time.perf_counter() - began
    else:
        total = sum(
            row["seconds_compile"] + FIGURE_STEPS * row["us_a_step"] / 1e6
            for row in rows
        )
    return {
        "rows": list(rows),
        "seconds_figure": total,
        "measured": options.full,
        "figure_steps": FIGURE_STEPS,
    }
