"""What bar, history and stopping rule cost together, against the bare loop."""

from typing import Any

import jax
import jax.random as jr
import numpy as np

import softcvi
from softcvi.fitting import Silent, paper_optimizer
from softcvi_experiments.bench._bare import bare_loop
from softcvi_experiments.bench._loops_ours import never_settled, visible_bar
from softcvi_experiments.bench._options import Options
from softcvi_experiments.bench._timing import seconds_of
from softcvi_experiments.references import BuiltinReferences
from softcvi_experiments.tasks import PAPER_TASKS, get_task

LIMIT = 1.05
_SECONDS = 1.0


def paper_problem(name: str):
    """Target, guide and optimiser of a task's first run.

    Example:
        >>> target, guide, optimizer = paper_problem("eight_schools")
        >>> target.structure.size == guide.structure.size
        True
    """
    task = get_task(name)
    data = task.data(jr.key(0), [0], BuiltinReferences())
    observed = jax.tree_util.tree_map(lambda leaf: leaf[0], data.observed)
    return (
        task.target(observed),
        task.guide(jr.key(1)),
        paper_optimizer(task.learning_rate),
    )


def measure_overhead(options: Options) -> list[dict[str, Any]]:
    """Loop times of the same steps: bare, kept to itself, with everything on.

    ``ratio`` sets everything (bar, history, stopping rule, chunks and the guards
    against numbers that are not finite) against the bare loop; ``ratio_host`` sets it
    against the same compiled loop without bar and stopping rule.

    Args:
        options: Settings of the run.
    """
    names = PAPER_TASKS[:1] if options.quick else PAPER_TASKS
    return [_measure(name, options) for name in names]


def _measure(name: str, options: Options) -> dict[str, Any]:
    target, guide, optimizer = paper_problem(name)
    objective = softcvi.SoftCVI()
    bare = bare_loop(target, guide, objective, optimizer)

    def fit(steps: int, **settings) -> float:
        return softcvi.fit(
            jr.key(0), target, guide, objective=objective, steps=steps,
            optimizer=optimizer, start=None, **settings,
        ).seconds_run  # fmt: skip

    bare(1)
    probe = 20 if options.quick else 1_000
    goal = 0.02 if options.quick else _SECONDS
    steps = int(np.clip(goal / (seconds_of(lambda: bare(probe)) / probe), 100, 10**6))
    ways = {
        "bare": lambda: seconds_of(lambda: bare(steps)),
        "silent": lambda: fit(steps, progress=Silent()),
        "full": lambda: fit(steps, progress=visible_bar(), stopping=never_settled()),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for run in ways.values():
        run()
    for _ in range(1 if options.quick else options.repeats):
        for way, run in ways.items():
            times[way].append(run())
    seconds = {way: float(np.median(values)) for way, values in times.items()}
    row = {
        "task": name,
        "steps": steps,
        "seconds": seconds,
        "us_a_step": {way: 1e6 * value / steps for way, value in seconds.items()},
        "ratio": _ratio(times["full"], times["bare"]),
        "ratio_host": _ratio(times["full"], times["silent"]),
        "limit": LIMIT,
    }
    options.say(f"overhead, {name}: {row['ratio']:.3f} times the bare loop")
    return row


def _ratio(ours: list[float], other: list[float]) -> float:
    """Of runs side by side: what slows the machine down slows both of a pair."""
    return float(np.median(np.divide(ours, other)))
