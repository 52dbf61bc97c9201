"""The study of many modes, and its table."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from softcvi_experiments.children import Task
from softcvi_experiments.modes._cases import CASES
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices
from softcvi_experiments.tables import markdown_table

# Error of a weight up to which a mixture is right.
_WEIGHT_ERROR = 0.05


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run; the grid has one key for each entry, the others all keys.

    Attributes:
        cases: Groups of cases.
        methods: Names of methods.
        keys: Runs of each case.

    Example:
        >>> len(Study(["forty-2"], ["fit"], range(5)).tasks())
        5
    """

    name = "modes"
    worker = "softcvi_experiments.modes._worker:run_case"
    identity = ("case", "entry", "key", "method")
    repeated = ("error", "timeout")

    cases: Sequence[str] = choices(CASES)
    methods: Sequence[str] = choices(("fit", "fit_until"), ("fit_until",))
    keys: Sequence[int] = (0, 1, 2, 3, 4)

    def tasks(self) -> list[Task]:
        return [
            {"case": name, "entry": entry, "key": key, "method": method}
            for name in self.cases
            for method in self.methods
            for key in (self.keys[:1] if name == "two-normals" else self.keys)
            for entry in range(CASES[name][0])
        ]

    def outcome(self, record: Record) -> str:
        said = "trusted" if record["trusted"] else "not trusted"
        return (
            f"{record['found']} of {record['parts']} parts, weights within "
            f"{record['weight_error']:.3f}, {said}; {record['seconds']:.1f} s"
        )

    def page(self, records: list[Record]) -> str:
        return study_page(records)


def is_right(record: Record) -> bool:
    """Whether all parts were found, with their weights.

    Example:
        >>> is_right({"found": 2, "parts": 2, "weight_error": 0.01})
        True
    """
    all_found = record["found"] == record["parts"]
    return all_found and record["weight_error"] < _WEIGHT_ERROR


def study_page(records: list[Record]) -> str:
    """The table of a study in Markdown.

    Args:
        records: Its records.
    """
    header = ["case", "parameters", "method", "runs", "all found", "weights within"]
    header += ["entropy", "ESS of weights", "trusted", "trusted and wrong", "seconds"]
    rows = []
    measured = answered(records)
    failed = [f"- {Study().describe(r)}" for r in records if r not in measured]
    kinds = sorted({(r["case"], r["parameters"], r["method"]) for r in measured})
    for kind in kinds:
        same = [
            r for r in measured if (r["case"], r["parameters"], r["method"]) == kind
        ]
        wrong = [r for r in same if r["trusted"] and not is_right(r)]
        rows.append(
            [
                *map(str, kind),
                str(len(same)),
                str(sum(r["found"] == r["parts"] for r in same)),
                f"{max(r['weight_error'] for r in same):.3f}",
                f"{min(r['entropy_share'] for r in same):.3f}",
                f"{min(r['ess_share'] or 0.0 for r in same):.3f}",
                str(sum(r["trusted"] for r in same)),
                str(len(wrong)),
                f"{np.median([r['seconds'] for r in same]):.0f}",
            ]
        )
    words = "Worst of all runs for weights, entropy and ESS; the median of seconds."
    page = ["# Many modes", words, markdown_table(header, rows)]
    return "\n\n".join([*page, *(["\n".join(failed)] if failed else [])]) + "\n"
