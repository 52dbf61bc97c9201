"""``--suite peers``: ours beside what users would pick."""

import dataclasses
from pathlib import Path
from typing import Any

from softcvi_experiments.bench._contender import time_contender
from softcvi_experiments.bench._loops_ours import our_contenders
from softcvi_experiments.bench._loops_peers import peer_contenders
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._overhead import measure_overhead
from softcvi_experiments.bench._problems import get_problem
from softcvi_experiments.bench._store import Result
from softcvi_experiments.bench._timing import measuring
from softcvi_experiments.tasks import PAPER_TASKS

PARTS = ("steps", "overhead")
_NUM_PARTICLES = 8
_QUICK_STEPS = 20


def bench_peers(options: Options) -> list[Path]:
    """Steps of all libraries side by side, and our overhead.

    Args:
        options: Settings of the run.

    Returns:
        The files written: result, table and plot.

    Example:
        >>> bench_peers(Options(Path("bench"), parts=("speed",)))
        Traceback (most recent call last):
        ...
        ValueError: parts: this suite has no 'speed'; it has steps, overhead
    """
    options.check_parts(PARTS)
    result = Result("peers", options)
    with measuring():
        if options.wants("steps"):
            result.add("steps", _measure_steps(options))
        if options.wants("overhead"):
            result.add("overhead", measure_overhead(options))
    return result.finish()


def _measure_steps(options: Options) -> list[dict[str, Any]]:
    found = []
    for name in PAPER_TASKS[:1] if options.quick else PAPER_TASKS:
        problem = get_problem(name)
        contenders = our_contenders(problem, _NUM_PARTICLES)
        peers = peer_contenders(problem, _NUM_PARTICLES)
        repeats = options.repeats
        if options.quick:
            problem = dataclasses.replace(problem, steps=_QUICK_STEPS)
            # One of ours and two peers show that the machinery works.
            contenders, repeats = contenders[:1], 1
            peers = [
                peer
                for peer in peer_contenders(problem, _NUM_PARTICLES)
                if peer.package in ("blackjax", "flowjax")
            ][1:]
        rows = []
        for contender in (*contenders, *peers):
            row = time_contender(contender, problem.steps, repeats)
            said = f"{row['us_a_step']:.1f} us" if "us_a_step" in row else row["status"]
            options.say(f"steps, {name}, {row['label']}: {said}")
            rows.append(row)
        ours = rows[0]["us_a_step"]
        for row in rows:
            if "us_a_step" in row:
                row["ratio"] = row["us_a_step"] / ours
        found.append(
            {
                "task": name, "title": problem.title, "steps": problem.steps,
                "num_particles": _NUM_PARTICLES, "rows": rows,
            }
        )  # fmt: skip
    return found
