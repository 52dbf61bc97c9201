"""The study: methods on random posteriors, in child processes, resumable."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import (
    ChildError,
    environment,
    failed_record,
    run_tasks,
)
from softcvi_experiments.store import Record
from softcvi_experiments.verdict._families import families
from softcvi_experiments.verdict._table import study_page

_IDENTITY = ("family", "seed", "key", "method", "x64")
_WORKER = "softcvi_experiments.verdict._worker"
_GROUP = 6


@dataclasses.dataclass(frozen=True)
class Study:
    """What to run.

    Attributes:
        split: ``"development"``, ``"held-out"`` or ``"cases"``.
        methods: Names of methods.
        seeds: Posteriors of each family.
        keys: Runs on each posterior.
        names: Families; all of the split if None.
        x64: Whether JAX computes in double precision.

    Example:
        >>> len(Study("development", ("fit",), range(2), (0,), ("banana",)).tasks())
        2
    """

    split: str
    methods: Sequence[str]
    seeds: Sequence[int]
    keys: Sequence[int]
    names: Sequence[str] | None = None
    x64: bool = False

    def tasks(self) -> list[dict[str, Any]]:
        """Every case, those of one family and method side by side."""
        chosen = [
            family.name
            for family in families(self.split)
            if self.names is None or family.name in self.names
        ]
        unknown = set(self.names or ()) - set(chosen)
        if unknown:
            raise ValueError(f"families: no {sorted(unknown)} in {self.split}.")
        return [
            {
                "split": self.split,
                "family": name,
                "seed": seed,
                "key": key,
                "method": method,
                "x64": self.x64,
            }
            for method in self.methods
            for name in chosen
            for seed in self.seeds
            for key in self.keys
        ]


def run_study(
    study: Study,
    out: str | Path,
    *,
    jobs: int = 1,
    timeout: float = 300.0,
    report: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is not in the folder yet, and write the table.

    Args:
        study: What to run.
        out: Output folder.
        jobs: Processes at a time, one thread each.
        timeout: Seconds for each case.
        report: Where a line per case goes.

    Returns:
        All records of the folder, the last one of each case.
    """
    store = RecordStore(out)
    finished = {
        _identity(record)
        for record in store.latest(*_IDENTITY)
        if record["status"] != "error"
    }
    todo = [task for task in study.tasks() if _identity(task) not in finished]
    env = environment(threads=1, cache=Path(out) / "cache", x64=study.x64)
    results = run_tasks(_WORKER, _groups(todo), jobs=jobs, timeout=timeout, env=env)
    try:
        for count, (task, result) in enumerate(results, 1):
            if isinstance(result, ChildError):
                result = failed_record(task, result)
            store.add([result])
            report(f"[{count}/{len(todo)}] {describe(result)}")
    finally:
        # An interrupted study still shows what it has.
        records = store.latest(*_IDENTITY)
        if records:
            (Path(out) / "verdict.md").write_text(study_page(records))
    return records


def _identity(record: Record) -> tuple:
    return tuple(record.get(name) for name in _IDENTITY)


def _groups(tasks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Cases of one method and family in small groups, the slower method first.

    The second group of a family comes after the first ones of all families, so that it
    finds its programs in the compilation cache.
    """
    rounds: dict[int, list[list[dict[str, Any]]]] = {}
    order = sorted(tasks, key=lambda t: (t["method"] == "fit", _kind(t)))
    for _, same in itertools.groupby(order, _kind):
        cases = list(same)
        for i in range(0, len(cases), _GROUP):
            rounds.setdefault(i, []).append(cases[i : i + _GROUP])
    return [group for i in sorted(rounds) for group in rounds[i]]


def _kind(task: dict[str, Any]) -> tuple[str, str]:
    return task["method"], task["family"]


def describe(record: Record) -> str:
    """A record in one line.

    Example:
        >>> describe({"family": "ring", "seed": 1, "key": 0, "method": "fit",
        ...           "status": "timeout", "message": "no answer within 9 s"})
        'ring 1 key 0 fit: timeout, no answer within 9 s'
    """
    head = "{family} {seed} key {key} {method}".format(**record)
    if record["status"] != "ok":
        return f"{head}: {record['status']}, {record['message'].splitlines()[0]}"
    said = "trusted" if record["trusted"] else "not trusted"
    right = "right" if record["right"] else "WRONG"
    return (
        f"{head}: {right}, {said}; centre {record['centre_error']:.2f} sd off, spread "
        f"{record['spread_ratio']:.2f} times; {record['seconds']:.1f} s"
    )
