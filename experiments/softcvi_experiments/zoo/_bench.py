"""The zoo's bench: every model by every method, each pair in a fresh process."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import Task
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, run_study
from softcvi_experiments.zoo._case import METHODS, blank_record
from softcvi_experiments.zoo._picture import draw_picture
from softcvi_experiments.zoo._registry import select
from softcvi_experiments.zoo._table import zoo_page

IDENTITY = ("model", "method", "seed")
DEFAULT_METHODS = (
    "fit",
    "fit_until",
    "auto_normal",
    "auto_mvn",
    "pathfinder",
    "nuts",
)


def run_zoo(
    models: Iterable[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    seeds: Sequence[int] = (0,),
    split: str | None = None,
    out: Path | str = "softcvi-zoo",
    processes: int = 1,
    timeout: float = 1_800.0,
    report: Callable[[str], None] = print,
) -> list[dict]:
    """Run the zoo's bench, or what is left of it, and write table and picture.

    Every model and method is a fresh process, so that its time includes compilation
    (later seeds, marked ``compiled_before``, find it done) and its failure stays its
    own. Records go to ``records.jsonl`` in the output folder as they come;
    cases already there without an error are not run again.

    Args:
        models: Names of zoo models; all if None.
        methods: Names of methods (``fit``, ``fit_until``, ``fit_starts``,
            ``auto_normal``, ``auto_mvn``, ``pathfinder``, ``nuts``).
        seeds: Seeds of the runs.
        split: "development" or "report" for one half of the zoo.
        out: Output folder.
        processes: Cases at a time; times are only comparable with one.
        timeout: Seconds after which a case is given up.
        report: Where a line per case goes.

    Returns:
        All records of the output folder.
    """
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise ValueError(
            f"methods {unknown} are not known; choose from: {', '.join(METHODS)}."
        )
    study = _Zoo(models, methods, seeds, split)
    return run_study(study, out, jobs=processes, timeout=timeout, report=report)


@dataclasses.dataclass(frozen=True)
class _Zoo(AbstractStudy):
    """Each model and method with all its seeds in a process of its own."""

    name = "zoo"
    worker = "softcvi_experiments.zoo._case:answer"
    identity = IDENTITY
    fresh = True
    timed = True
    repeated = ("error", "timeout")

    models: Iterable[str] | None
    methods: Sequence[str]
    seeds: Sequence[int]
    split: str | None

    def tasks(self) -> list[Task]:
        return [
            {"model": model.name, "method": method, "seed": seed, "first": i == 0}
            for model in select(self.models, self.split)
            for method in self.methods
            for i, seed in enumerate(self.seeds)
        ]

    def groups(self, tasks: list[Task], out: Path) -> list[list[Task]]:
        same = itertools.groupby(tasks, lambda task: (task["model"], task["method"]))
        return [list(group) for _, group in same]

    def records_of(self, task: Task, result: dict[str, Any]) -> list[Record]:
        blank = blank_record(*self.case_of(task))
        return [blank | {k: v for k, v in result.items() if k != "first"}]

    def outcome(self, record: Record) -> str:
        trusted = {True: "trusted", False: "not trusted", None: "no verdict"}
        return (
            f"mean error {record['mean_error']:.2f} sd at "
            f"{record['mean_error_at']}, sd ratio {record['sd_ratio_min']:.2f} to "
            f"{record['sd_ratio_max']:.2f}, {trusted[record['trusted']]}, "
            f"{record['seconds']:.1f} s"
        )

    def page(self, records: list[Record]) -> str:
        return zoo_page(records)

    def finish(self, store: RecordStore) -> list[Record]:
        records = super().finish(store)
        if records:
            draw_picture(records, store.folder / "zoo.png")
        return records
