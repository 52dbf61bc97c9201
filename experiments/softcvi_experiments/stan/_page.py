"""The study of Stan programs, and the table of its records."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcvi_experiments.children import Task, environment
from softcvi_experiments.stan._compare import METHODS
from softcvi_experiments.stan._programs import names
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, choices
from softcvi_experiments.tables import markdown_table

_COLUMNS = ("means off (sd)", "ratio of sds", "trusted", "seconds")


def page(records: list[Record]) -> str:
    """Markdown: how many programs are right, then a row for each.

    Args:
        records: The last record of each program, method and seed.

    Example:
        >>> row = {"program": "a", "method": "fit", "seed": 0, "dimension": 2}
        >>> figures = {"mean_off": 0.01, "sd_low": 1.0, "sd_high": 1.0, "seconds": 3.0}
        >>> facts = {"trusted": True, "right": True, "sound": True}
        >>> print(page([{**row, **figures, **facts}]).splitlines()[0])
        `fit`: right and trusted on 1 of 1 programs; trusted but wrong on 0.
    """
    lines = [_sentence(m, [r for r in records if r["method"] == m]) for m in METHODS]
    header = ["program", "parameters"]
    for method in METHODS:
        header += [f"`{method}`: {column}" for column in _COLUMNS]
    rows = []
    for program in sorted({r["program"] for r in records}):
        mine = {r["method"]: r for r in records if r["program"] == program}
        sizes = [str(r["dimension"]) for r in mine.values() if "dimension" in r]
        sound = all(r.get("sound", True) for r in mine.values())
        row = [program + ("" if sound else " (NUTS in doubt)"), (sizes or ["-"])[0]]
        for method in METHODS:
            row += _cells(mine.get(method))
        rows.append(row)
    text = [line for line in lines if line]
    return "\n\n".join([*text, markdown_table(header, rows)]) + "\n"


def _sentence(method: str, records: list[Record]) -> str:
    if not records:
        return ""
    # Where chains of NUTS disagree there is nothing to be right about.
    sound = [r for r in records if r.get("sound", True)]
    good = sum(bool(r.get("right") and r.get("trusted")) for r in sound)
    wrong = sum(bool(r.get("trusted") and not r.get("right")) for r in sound)
    return (
        f"`{method}`: right and trusted on {good} of {len(sound)} programs; trusted "
        f"but wrong on {wrong}."
    )


def _cells(record: Record | None) -> list[str]:
    if record is None:
        return ["-"] * len(_COLUMNS)
    if "mean_off" not in record:
        return ["failed", "-", "-", "-"]
    return [
        f"{record['mean_off']:.3f}",
        f"{record['sd_low']:.2f} to {record['sd_high']:.2f}",
        "yes" if record["trusted"] else "no",
        f"{record['seconds']:.0f}",
    ]


@dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run; one program after the other, each by all methods.

    Attributes:
        programs: Names of programs.
        methods: ``fit``, ``fit_until`` or both.
        seed: Seed of the fits and the chains.

    Example:
        >>> [task["method"] for task in Study(["garch11"]).tasks()]
        ['fit', 'fit_until']
    """

    name = "stan"
    worker = "softcvi_experiments.stan._compare:measure"
    identity = ("program", "method", "seed")
    timeout = 7200.0
    timed = True

    programs: Sequence[str] = choices(names())
    methods: Sequence[str] = choices(METHODS)
    seed: int = 0

    def tasks(self) -> list[Task]:
        return [
            {"program": program, "method": method, "seed": self.seed}
            for program in self.programs
            for method in self.methods
        ]

    def groups(self, tasks: list[Task], out: Path) -> list[list[Task]]:
        folder = str(out / "references")
        return super().groups([{**t, "references": folder} for t in tasks], out)

    def environment(self, out: Path) -> dict[str, str]:
        return environment(x64=True)

    def records_of(self, task: Task, result: dict[str, Any]) -> list[Record]:
        return [{k: v for k, v in result.items() if k != "references"}]

    def outcome(self, record: Record) -> str:
        off, spread, trusted, seconds = _cells(record)
        return (
            f"means off {off} sd ({record['worst']}), sd ratio {spread}, trusted: "
            f"{trusted}, {seconds} s{'' if record['sound'] else ', NUTS in doubt'}"
        )

    def page(self, records: list[Record]) -> str:
        return page(records)
