"""The suite: tasks of all parts, in child processes, one record each."""

import dataclasses
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import ChildError, environment, run_tasks
from softcvi_experiments.faults._table import faults_page
from softcvi_experiments.store import Record

PROGRAMS = ("fit", "fit_until", "fit_many", "reproduce", "sweep")
PARTS = ("files", "kills", "signals", "disk", "ctrl-c", "clock", "writers", "long")
IDENTITY = ("part", "case", "seed", "count")
_WORKER = "softcvi_experiments.faults._worker:run_task"
_CHUNK = 250
_ROUND = 5
# Kinds of files, with the cost of reading one relative to the cheapest. Listed
# here, since the readers take seconds to import.
_FORMATS = {
    "posterior": 4, "posterior of a flow": 8, "checkpoint": 8, "ask/tell session": 8,
    "records of a sweep": 1, "records of experiments": 1, "draws of experiments": 1,
    "result.json": 1, "draws.csv": 1, "reference draws": 2, "data, JSON": 3,
    "data, CSV": 3, "data, NPZ": 3, "Stan data, R dump": 1, "Stan data, JSON": 1,
    "Stan data, zipped": 1, "Stan data, gzipped": 1, "grid of a sweep": 1,
    "rows in .npy": 1, "rows in Parquet": 1, "rows in Zarr": 1,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Faults:
    """What to run.

    Attributes:
        parts: Some of ``PARTS``.
        programs: Some of ``PROGRAMS``, for the parts that run programs.
        kills: SIGKILLs of each program.
        files: Damaged files in all.
        others: Faults of each other kind, for each program; of full disks all, if there
            are fewer.
        steps: Steps of the long run.
        resumes: Pieces of the fit in pieces.
        seed: First seed.
        formats: Kinds of damaged files.

    Example:
        >>> len(Faults(parts=("kills",), kills=10).tasks())
        10
    """

    parts: Sequence[str] = PARTS
    programs: Sequence[str] = PROGRAMS
    kills: int = 5
    files: int = 20_000
    others: int = 4
    steps: int = 1_000_000
    resumes: int = 200
    seed: int = 0
    formats: Sequence[str] = tuple(_FORMATS)

    def tasks(self) -> list[dict[str, Any]]:
        """Every task, without the folder that it works in."""
        unknown = set(self.parts) - set(PARTS)
        if unknown:
            raise ValueError(f"parts: no {sorted(unknown)}; known are {PARTS}.")
        made = {
            "files": self._files,
            "kills": lambda: _rounds("kills", PROGRAMS, self.kills, self.seed),
            "disk": lambda: _many("disk", self.others, self.seed),
            "signals": lambda: _rounds("signals", PROGRAMS[:3], self.others, self.seed),
            "ctrl-c": lambda: _many("ctrl-c", self.others, self.seed),
            "clock": lambda: _many("clock", self.others, self.seed),
            "writers": _writers,
            "long": self._long,
        }
        tasks = [task for part in self.parts for task in made[part]()]
        left_out = set(PROGRAMS) - set(self.programs)
        return [task for task in tasks if task["case"] not in left_out]

    def _files(self) -> list[dict[str, Any]]:
        shares = {name: 1.0 / _FORMATS[name] for name in self.formats}
        whole = sum(shares.values())
        tasks = []
        for name, share in shares.items():
            total = -int(-self.files * share // whole)
            for first in range(0, total, _CHUNK):
                count = min(_CHUNK, total - first)
                seed = self.seed * 1_000_000 + first
                task = {"part": "files", "case": name, "format": name}
                tasks.append({**task, "seed": seed, "count": count})
        return tasks

    def _long(self) -> list[dict[str, Any]]:
        counts = {"steps": self.steps, "resumes": self.resumes}
        return [
            {"part": "long", "case": case, "seed": 0, "count": count}
            for case, count in counts.items()
        ]


def _rounds(
    part: str, programs: Sequence[str], count: int, seed: int
) -> list[dict[str, Any]]:
    """Tasks of some faults each, which end a process."""
    return [
        {"part": part, "case": name, "seed": seed + i, "count": min(_ROUND, count - i)}
        for i in range(0, count, _ROUND)
        for name in programs
    ]


def _many(part: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Tasks of many faults each, which a process survives."""
    return [
        {"part": part, "case": name, "seed": seed, "count": count} for name in PROGRAMS
    ]


def _writers() -> list[dict[str, Any]]:
    cases = ("fit", "sweep", "records")
    return [{"part": "writers", "case": c, "seed": 0, "count": 2} for c in cases]


def run_faults(
    faults: Faults,
    out: str | Path,
    *,
    jobs: int = 1,
    timeout: float = 900.0,
    limit: float = float("inf"),
    report: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is not in the folder yet, and write the tables.

    Args:
        faults: What to run.
        out: Output folder.
        jobs: Processes at a time.
        timeout: Seconds for each task.
        limit: Seconds after which no further task is begun.
        report: Where a line per task goes.

    Returns:
        All records of the folder, the last one of each task.
    """
    ends = time.monotonic() + limit
    store = RecordStore(out)
    known = {_identity(r) for r in store.latest(*IDENTITY) if "message" not in r}
    todo = [task for task in faults.tasks() if _identity(task) not in known]
    with tempfile.TemporaryDirectory(
        prefix="softcvi-faults-", ignore_cleanup_errors=True
    ) as scratch:
        alone = [
            {"part": "alone", "case": name, "seed": 0, "count": 1}
            for name in dict.fromkeys(t["case"] for t in todo if _needs_baseline(t))
        ]
        for stage in (alone, todo):
            tasks = [{**task, "folder": scratch} for task in stage]
            env = environment(threads=1, cache=Path(scratch) / "cache")
            results = run_tasks(
                _WORKER, [[task] for task in tasks], jobs=jobs, timeout=timeout, env=env
            )
            for count, (task, result) in enumerate(results, 1):
                record = _record(task, result)
                if stage is todo:
                    store.add([record])
                report(f"[{count}/{len(tasks)}] {describe(record)}")
                if time.monotonic() > ends:
                    report("the limit is reached; the same command continues here")
                    break
    records = store.latest(*IDENTITY)
    (Path(out) / "faults.md").write_text(faults_page(records), encoding="utf-8")
    return records


def _needs_baseline(task: dict[str, Any]) -> bool:
    return task["case"] in PROGRAMS and task["part"] in ("kills", "signals", "writers")


def _record(task: dict[str, Any], result: dict[str, Any] | ChildError) -> Record:
    found = result if isinstance(result, dict) else {**task, "message": str(result)}
    # The scratch folder has another name each time.
    rest = {k: v for k, v in found.items() if k not in ("folder", "format")}
    text = json.dumps(rest).replace(task["folder"], "OUT")
    return {"ok": "message" not in rest, **json.loads(text)}


def _identity(record: Record) -> tuple:
    return tuple(record.get(name) for name in IDENTITY)


def describe(record: Record) -> str:
    """A record in one line.

    Example:
        >>> describe({"part": "kills", "case": "fit", "seed": 3, "ok": True})
        'kills fit 3: held'
    """
    head = "{part} {case} {seed}".format(**record)
    if record["part"] == "files" and "named" in record:
        counts = ("loaded", "named", "raw", "memory", "time", "executed")
        return f"{head}: " + ", ".join(f"{record[name]} {name}" for name in counts)
    if "times" in record:
        return f"{head}: {record['held']} of {record['times']} held {record['cases']}"
    if record["ok"]:
        return f"{head}: held"
    words = record.get("message") or record.get("again") or record.get("errors") or ""
    return f"{head}: FAILED {record.get('fault', '')} {record.get('left', '')} {words}"
