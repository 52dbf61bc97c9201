"""The study: methods on random posteriors."""

import dataclasses
import zlib
from collections.abc import Sequence
from pathlib import Path

from softcvi_experiments.children import Task, environment
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, choices
from softcvi_experiments.verdict._families import SPLITS, families
from softcvi_experiments.verdict._methods import METHODS
from softcvi_experiments.verdict._table import study_page


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run.

    Attributes:
        split: A set of families.
        methods: Names of methods.
        seeds: Posteriors of each family.
        keys: Runs on each posterior.
        families: Names of families; all of the split if None.
        x64: Whether JAX computes in double precision.

    Example:
        >>> len(Study("development", ("fit",), range(2), (0,), ("banana",)).tasks())
        2
    """

    name = "verdict"
    worker = "softcvi_experiments.verdict._worker:run_case"
    identity = ("family", "seed", "key", "method", "x64")

    split: str = choices(SPLITS, "development")
    methods: Sequence[str] = choices(METHODS, ("fit", "fit_until"))
    seeds: Sequence[int] = (0, 1)
    keys: Sequence[int] = (0,)
    families: Sequence[str] | None = None
    x64: bool = False

    def tasks(self) -> list[Task]:
        """Every case."""
        chosen = [
            family.name
            for family in families(self.split)
            if self.families is None or family.name in self.families
        ]
        unknown = set(self.families or ()) - set(chosen)
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

    def kind(self, task: Task) -> tuple:
        # Seed by seed, and families in an order that says nothing of them: what a
        # study that was stopped has run is a fair sample.
        name = task["family"]
        return task["seed"], zlib.crc32(name.encode()), name

    def environment(self, out: Path) -> dict[str, str]:
        return environment(threads=1, cache=out / "cache", x64=self.x64)

    def outcome(self, record: Record) -> str:
        said = "trusted" if record["trusted"] else "not trusted"
        right = "right" if record["right"] else "WRONG"
        return (
            f"{right}, {said}; centre {record['centre_error']:.2f} sd off, "
            f"spread {record['spread_ratio']:.2f} times; {record['seconds']:.1f} s"
        )

    def page(self, records: list[Record]) -> str:
        return study_page(records)
