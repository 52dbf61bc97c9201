"""The study: every case in child processes, resumable, with its table."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import ChildError, environment, run_tasks
from softcvi_experiments.modes._cases import CASES
from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table

_IDENTITY = ("case", "entry", "key", "method")
_WORKER = "softcvi_experiments.modes._worker"
_GROUP = 6
# Error of a weight up to which a mixture is right.
_WEIGHT_ERROR = 0.05


def tasks(
    names: Sequence[str], methods: Sequence[str], keys: Sequence[int]
) -> list[dict[str, Any]]:
    """Every run; the grid has one key for each entry, the others all keys.

    Args:
        names: Groups of cases.
        methods: Names of methods.
        keys: Runs of each case.

    Example:
        >>> len(tasks(["forty-2"], ["fit"], range(5)))
        5
    """
    return [
        {"case": name, "entry": entry, "key": key, "method": method}
        for name in names
        for method in methods
        for key in (keys[:1] if name == "two-normals" else keys)
        for entry in range(CASES[name][0])
    ]


def run_study(
    todo: list[dict[str, Any]],
    out: str | Path,
    *,
    jobs: int = 1,
    timeout: float = 300.0,
    report: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is not in the folder yet, and write the table.

    Args:
        todo: What to run, from ``tasks``.
        out: Output folder.
        jobs: Processes at a time, one thread each.
        timeout: Seconds for each case.
        report: Where a line per case goes.
    """
    store = RecordStore(out)
    done = {_identity(r) for r in store.latest(*_IDENTITY) if r["status"] == "ok"}
    todo = [task for task in todo if _identity(task) not in done]
    env = environment(threads=1, cache=Path(out) / "cache")
    order = sorted(todo, key=lambda t: (t["case"], t["method"]))
    groups = []
    for _, same in itertools.groupby(order, lambda t: (t["case"], t["method"])):
        cases = list(same)
        groups += [cases[i : i + _GROUP] for i in range(0, len(cases), _GROUP)]
    results = run_tasks(_WORKER, groups, jobs=jobs, timeout=timeout, env=env)
    try:
        for count, (task, result) in enumerate(results, 1):
            if isinstance(result, ChildError):
                result = {**task, "status": "error", "message": str(result)}
            store.add([result])
            report(f"[{count}/{len(todo)}] {_line(result)}")
    finally:
        records = store.latest(*_IDENTITY)
        if records:
            (Path(out) / "modes.md").write_text(study_page(records))
    return records


def _identity(record: Record) -> tuple:
    return tuple(record.get(name) for name in _IDENTITY)


def _line(record: Record) -> str:
    head = "{case} {entry} key {key} {method}".format(**record)
    if record["status"] != "ok":
        return f"{head}: {record['message'].splitlines()[0]}"
    said = "trusted" if record["trusted"] else "not trusted"
    return (
        f"{head}: {record['found']} of {record['parts']} parts, weights within "
        f"{record['weight_error']:.3f}, {said}; {record['seconds']:.1f} s"
    )


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
    measured = [r for r in records if r["status"] == "ok"]
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
    failed = [f"- {_line(r)}" for r in records if r["status"] != "ok"]
    words = "Worst of all runs for weights, entropy and ESS; the median of seconds."
    page = ["# Many modes", words, markdown_table(header, rows)]
    return "\n\n".join([*page, *(["\n".join(failed)] if failed else [])]) + "\n"
