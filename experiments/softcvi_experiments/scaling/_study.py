"""Which cases are measured."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

from softcvi_experiments.bench._growth_large import DIMENSIONS, GROUPS
from softcvi_experiments.children import Task, environment
from softcvi_experiments.scaling._programs import WAYS
from softcvi_experiments.scaling._tables import tables
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices

_DEVICES = 8
_EMPTY = {"guide": "mean-field", "particles": 8, "dimension": 0, "rows": 0}
_EMPTY |= {"groups": 0, "devices": 1}
_SIZES: dict[str, list[Task]] = {
    "dimension": [{"dimension": d} for d in DIMENSIONS],
    "particles": [{"dimension": 1_000, "particles": k} for k in (2, 32, 128)],
    "rows": [
        *({"dimension": 20, "rows": n} for n in (1_000, 10_000, 100_000)),
        *({"dimension": 20, "rows": 10_000, "particles": k} for k in (2, 32)),
        {"dimension": 200, "rows": 10_000},
    ],
    "dense": [
        *({"guide": "full-rank", "dimension": d} for d in (10, 100, 1_000)),
        {"guide": "full-rank", "dimension": 300, "particles": 32},
    ],
    "groups": [
        {"guide": "hierarchical", "dimension": 2 * j + 2, "groups": j} for j in GROUPS
    ],
    "exchange": [
        {"dimension": d, "rows": 100_000, "particles": k, "devices": _DEVICES}
        for k, d in itertools.product((8, 32), (20, 200))
    ],
    "whole": [{"dimension": d} for d in (1_000, 10_000, 20_000)],
    "load": [{"dimension": 20, "rows": 2_000_000, "devices": _DEVICES}],
}
PARTS = tuple(_SIZES)
_OURS = ("SoftCVI",)
_WHO = {"exchange": ("SoftCVI", "ELBO"), "load": _OURS, "whole": _OURS}


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """Steps of several sizes, one thread each.

    Attributes:
        parts: What grows.
        ways: Who computes the steps.

    Example:
        >>> len(Study(["dimension"], ["SoftCVI"]).tasks())
        5
    """

    name = "scaling"
    worker = "softcvi_experiments.scaling._measure:measure"
    identity = (
        "part", "way", "guide", "particles", "dimension", "rows", "groups", "devices",
    )  # fmt: skip
    fresh = True
    timed = True

    parts: Sequence[str] = choices(PARTS)
    ways: Sequence[str] = choices(WAYS)

    def tasks(self) -> list[Task]:
        """Each size of each part by each way that has it."""
        return [
            {"part": part, "way": way, **_EMPTY, **sizes}
            for part in self.parts
            for way in self.ways
            if way in _WHO.get(part, WAYS)
            for sizes in _SIZES[part]
        ]

    def environment(self, out: Path) -> dict[str, str]:
        """One thread: a device of the model is one core."""
        return environment(threads=1)

    def kind(self, task: Task) -> tuple:
        """Parts apart, as devices and the peak of memory are those of a process."""
        size = task["dimension"] if task["part"] == "whole" else 0
        return task["part"], task["way"], size

    def outcome(self, record: Record) -> str:
        """Time, or bytes."""
        if "seconds_per_step" in record:
            return f"{1e6 * record['seconds_per_step']:.1f} us per step"
        return f"{record['bytes']:,} bytes"

    def page(self, records: list[Record]) -> str:
        """All tables, once all cases have an answer."""
        found = answered(records)
        missing = {self.case_of(task) for task in Study().tasks()}
        missing -= {self.case_of(record) for record in found}
        if missing:
            return f"# Scaling\n\n{len(missing)} cases have no answer yet.\n"
        made = tables(found)
        return "# Scaling\n\n" + "\n\n".join(made.values()) + "\n"
