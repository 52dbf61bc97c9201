"""``sweep``: run what is missing of a grid, and keep one record per fit."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.diagnostics import summarise
from softcvi.fitting import (
    AbstractReporter,
    FitResult,
    as_reporter,
    fit,
    fit_many,
)
from softcvi.sweeps._executors import AbstractExecutor, SerialExecutor
from softcvi.sweeps._grid import GUIDES, Configuration, Grid
from softcvi.sweeps._store import RecordStore
from softcvi.targets import AbstractTarget

# Fits of one program per batch: a worker that dies loses at most so many.
_BATCH = 16

_SETTINGS = ("model", "data", "guide", "objective", "particles", "alpha")

Load = Callable[[str, str | None], AbstractTarget]


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """The records of a sweep.

    Attributes:
        records: One per configuration, in the order of the grid.

    Example:
        >>> from softcvi.sweeps import SweepResult
        >>> SweepResult([{"status": "failed"}, {"status": "finished"}]).num_failed
        1
    """

    records: list[dict[str, Any]]

    @property
    def num_failed(self) -> int:
        """How many fits failed."""
        return sum(record["status"] == "failed" for record in self.records)

    def groups(self) -> dict[tuple, list[dict[str, Any]]]:
        """The records of each setting, over its seeds."""
        groups: dict[tuple, list[dict[str, Any]]] = {}
        for record in self.records:
            settings = record["configuration"]
            name = tuple(settings[column] for column in _SETTINGS)
            groups.setdefault(name, []).append(record)
        return groups

    def labelled_groups(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The same, named by the settings in which they differ."""
        groups = self.groups()
        columns = list(zip(*groups, strict=True))
        differ = [i for i, values in enumerate(columns) if len(set(values)) > 1] or [0]
        return [
            (", ".join(str(name[i]) for i in differ if name[i] is not None), records)
            for name, records in groups.items()
        ]

    def table(self) -> str:
        """The records in short: one row per setting, over its seeds, in Markdown."""
        rows = [[*_SETTINGS, "fits", "failed", "trusted", "median k-hat", "seconds"]]
        for name, records in self.groups().items():
            done = [r for r in records if r["status"] != "failed"]
            khats = [r["khat"] for r in done if r["khat"] is not None]
            rows.append(
                [
                    *("" if part is None else str(part) for part in name),
                    str(len(records)),
                    str(len(records) - len(done)),
                    str(sum(r["verdict"] == "trusted" for r in done)),
                    f"{np.median(khats):.2f}" if khats else "",
                    f"{np.median([r['seconds'] for r in done]):.1f}" if done else "",
                ]
            )
        lines = [" | ".join(row) for row in rows]
        lines.insert(1, " | ".join(["---"] * len(rows[0])))
        return "\n".join(f"| {line} |" for line in lines)


def sweep(
    grid: Grid,
    load: Load,
    out: str | os.PathLike,
    *,
    executor: AbstractExecutor | None = None,
    progress: bool | AbstractReporter = True,
) -> SweepResult:
    """Fit every configuration of a grid that has no record yet.

    Args:
        grid: The configurations.
        load: Function from the names of a model and of a data set (or None) to a
            target. Other processes import it, so it must be a function of a module.
        out: Folder of the records; a second call goes on where the first was stopped.
        executor: Where to run: ``SerialExecutor`` by default, ``ProcessExecutor`` or
            ``DaskExecutor``.
        progress: Show a bar on a terminal; or a reporter.

    Returns:
        One record per configuration. A fit that fails has a record that says why.

    Example:
        >>> import tempfile, jax.numpy as jnp, softcvi
        >>> from softcvi.sweeps import Grid, sweep
        >>> def load(model, data):
        ...     log_prob = lambda x: -0.5 * jnp.sum(x**2)
        ...     return softcvi.DensityTarget(log_prob, jnp.zeros(2))
        >>> grid = Grid(("normal",), guides=("mean-field",), seeds=(0, 1), steps=20)
        >>> result = sweep(grid, load, tempfile.mkdtemp(), progress=False)
        >>> [record["status"] for record in result.records]
        ['finished', 'finished']
    """
    executor = SerialExecutor() if executor is None else executor
    store = RecordStore(out)
    configurations = grid.configurations()
    done = store.identifiers()
    missing = [c for c in configurations if c.identifier not in done]
    batches = _batches(missing)
    outcomes = executor.run_with_progress(
        functools.partial(run_batch, load),
        batches,
        as_reporter(progress),
        "sweep",
        done=len(configurations) - len(missing),
    )
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            if outcome.error is None:
                store.add(outcome.value)
            else:
                batch = batches[outcome.index]
                store.add(_failed(c, outcome.error) for c in batch)
    return SweepResult(_records_of(store, configurations))


def _records_of(
    store: RecordStore, configurations: Iterable[Configuration]
) -> list[dict[str, Any]]:
    """One record per configuration, refused if it lacks what a table shows."""
    found = {str(record.get("id")): record for record in store.all()}
    records = [found[c.identifier] for c in configurations]
    for record in records:
        settings = record.get("configuration")
        is_whole = isinstance(settings, dict) and set(_SETTINGS) <= set(settings)
        if record.get("status") != "failed":
            numbers = (record.get("khat", ""), record.get("seconds", ""))
            is_whole &= all(isinstance(n, float | int | None) for n in numbers)
            is_whole &= {"verdict", "status"} <= set(record)
        if not is_whole:
            raise ValueError(
                f"{store.path}: the record {record['id']} is damaged. Remove its line, "
                "and the fit is made again; or choose another folder."
            )
    return records


def _batches(configurations: Iterable[Configuration]) -> list[list[Configuration]]:
    """Configurations that share a program, in pieces that a worker takes at a time."""
    groups: dict[Configuration, list[Configuration]] = {}
    for configuration in configurations:
        groups.setdefault(configuration.program, []).append(configuration)
    return [
        group[start : start + _BATCH]
        for group in groups.values()
        for start in range(0, len(group), _BATCH)
    ]


def run_batch(load: Load, batch: Sequence[Configuration]) -> list[dict[str, Any]]:
    """Fit configurations that differ in their seed alone; one record each."""
    try:
        return _run_batch(load, batch)
    except SystemExit as stop:
        # A model that ends the program would end the sweep, or take a worker down.
        raise RuntimeError(f"the model ended the program ({stop!r})") from stop


def _run_batch(load: Load, batch: Sequence[Configuration]) -> list[dict[str, Any]]:
    first = batch[0]
    target = load(first.model, first.data)
    pairs = [jax.random.split(jax.random.key(c.seed)) for c in batch]
    keys = [pair[0] for pair in pairs]
    guides = [GUIDES[first.guide](pair[1], target) for pair in pairs]
    settings: dict[str, Any] = {
        "objective": first.make_objective(),
        "steps": first.steps,
        "progress": False,
    }
    if guides[0] is None:
        results = [fit(key, target, throw=False, **settings) for key in keys]
    else:
        stacked = jax.tree_util.tree_map(
            lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0],
            *guides,
        )
        results = fit_many(
            jnp.stack(keys), target, stacked, batched_guide=True, **settings
        )
    raise_if_interrupted(results)
    return [_record(c, r) for c, r in zip(batch, results, strict=True)]


def raise_if_interrupted(results: Iterable[FitResult]) -> None:
    """Raise ``KeyboardInterrupt`` if Ctrl-C has ended a fit.

    A fit gives back what it had reached, which would be taken for a finished one.

    Args:
        results: Results of fits.
    """
    if any(result.status == "interrupted" for result in results):
        raise KeyboardInterrupt


def _record(configuration: Configuration, result: FitResult) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "id": configuration.identifier,
        "configuration": dataclasses.asdict(configuration),
        "status": result.status,
        "message": result.message,
        "verdict": verdict.level,
        "reasons": list(verdict.reasons),
        "khat": verdict.khat,
        "log_evidence": result.importance.log_evidence,
        "seconds": result.seconds_start + result.seconds_compile + result.seconds_run,
        "estimates": summarise(*result.weighted_draws),
    }


def _failed(configuration: Configuration, error: str) -> dict[str, Any]:
    return {
        "id": configuration.identifier,
        "configuration": dataclasses.asdict(configuration),
        "status": "failed",
        "message": error,
    }
