"""One driver for the studies whose cases run in child processes.

A study says which cases there are, which module runs one, how a record reads in a line
and what its page shows. What is on record is not run again.
"""

import abc
import argparse
import dataclasses
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import (
    ChildError,
    Task,
    environment,
    failed_record,
    run_tasks,
)
from softcvi_experiments.stopping import say, stopped_after
from softcvi_experiments.store import Record

_GROUP = 6


class AbstractStudy(abc.ABC):
    """What a study is.

    Attributes:
        name: Its name, and that of its page.
        worker: Function that runs a case, as ``module:function``.
        identity: Names of the values that tell one case from another.
        fresh: Whether each group of cases has a new process.
        repeated: States of a record whose case is run again.
        timeout: Seconds for each case, unless the user says otherwise.
        timed: Whether times are compared: one process at a time on all cores, without
            a compilation cache, unless the user or the study says otherwise.
    """

    name: ClassVar[str]
    worker: ClassVar[str]
    identity: ClassVar[tuple[str, ...]]
    fresh: ClassVar[bool] = False
    repeated: ClassVar[tuple[str, ...]] = ("error",)
    timeout: ClassVar[float] = 300.0
    timed: ClassVar[bool] = False

    @abc.abstractmethod
    def tasks(self) -> list[Task]:
        """Every case."""

    def describe(self, record: Record) -> str:
        """A record in one line.

        Args:
            record: Of any status.
        """
        head = " ".join(str(value) for value in self.case_of(record))
        if not answered([record]):
            return f"{head}: {record['status']}, {record['message'].splitlines()[0]}"
        return f"{head}: {self.outcome(record)}"

    def outcome(self, record: Record) -> str:
        """What came out of a case, in one line.

        Args:
            record: Of a case with an answer.
        """
        return "done"

    @abc.abstractmethod
    def page(self, records: list[Record]) -> str:
        """The page of the study in Markdown."""

    def case_of(self, record: Record) -> tuple:
        """What tells a case from the others.

        Args:
            record: A task, or a record of one.
        """
        return tuple(record.get(name) for name in self.identity)

    def groups(self, tasks: list[Task], out: Path) -> list[list[Task]]:
        """Cases that run one after the other in one process.

        Those that share their programs are side by side. The second group of a kind
        comes after the first ones of all kinds, so that it finds its programs in the
        compilation cache.

        Args:
            tasks: What is to be run.
            out: Output folder.
        """
        rounds: dict[int, list[list[Task]]] = {}
        for _, same in itertools.groupby(sorted(tasks, key=self.kind), self.kind):
            cases = list(same)
            for i in range(0, len(cases), _GROUP):
                rounds.setdefault(i, []).append(cases[i : i + _GROUP])
        return [group for i in sorted(rounds) for group in rounds[i]]

    def kind(self, task: Task) -> tuple:
        """What cases that share their programs have in common; sorts the groups.

        Args:
            task: The case.
        """
        return (str(task[self.identity[0]]),)

    def environment(self, out: Path) -> dict[str, str]:
        """Environment of the processes.

        Args:
            out: Output folder.
        """
        if self.timed:
            return environment()
        return environment(threads=1, cache=out / "cache")

    def records_of(self, task: Task, result: dict[str, Any]) -> list[Record]:
        """What is kept of a case.

        Args:
            task: The case.
            result: What the worker gave, or the record of its failure.
        """
        return [result]

    def finish(self, store: RecordStore) -> list[Record]:
        """Write the page, and return what it shows.

        Args:
            store: The records.
        """
        records = store.latest(*self.identity)
        if records:
            (store.folder / f"{self.name}.md").write_text(self.page(records))
        return records


def run_study(
    study: AbstractStudy,
    out: str | Path,
    *,
    jobs: int = 1,
    timeout: float = 300.0,
    report: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is not in the folder yet, and write the page.

    Args:
        study: What to run.
        out: Output folder.
        jobs: Processes at a time.
        timeout: Seconds for each case.
        report: Where a line per case goes.

    Returns:
        What the page shows: all records of the folder, the last one of each case.
    """
    store = RecordStore(out)
    done = {
        study.case_of(record)
        for record in store.latest(*study.identity)
        if record.get("status") not in study.repeated
    }
    todo = [task for task in study.tasks() if study.case_of(task) not in done]
    results = run_tasks(
        study.worker,
        study.groups(todo, store.folder),
        jobs=jobs,
        timeout=timeout,
        env=study.environment(store.folder),
        fresh=study.fresh,
    )
    try:
        for count, (task, result) in enumerate(results, 1):
            if isinstance(result, ChildError):
                result = failed_record(task, result)
            records = study.records_of(task, result)
            store.add(records)
            for record in records:
                report(f"[{count}/{len(todo)}] {study.describe(record)}")
    finally:
        # An interrupted study still shows what it has.
        shown = study.finish(store)
    return shown


def numbers(text: str) -> tuple[int, ...]:
    """Numbers as a command line names them.

    Example:
        >>> numbers("0-3,7")
        (0, 1, 2, 3, 7)
    """
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def answered(records: list[Record]) -> list[Record]:
    """Records of cases with an answer.

    Args:
        records: Of any status; early ones have none.

    Example:
        >>> answered([{"status": "ok"}, {"status": "timeout"}, {}])
        [{'status': 'ok'}, {}]
    """
    return [record for record in records if record.get("status", "ok") == "ok"]


def choices(options: Iterable[str], default: str | Sequence[str] | None = None) -> Any:
    """A field of a study that takes some of several names.

    Args:
        options: The names.
        default: One name for a field that takes one; all by default.
    """
    names = tuple(options)
    chosen = names if default is None else default
    return dataclasses.field(default=chosen, metadata={"choices": names})


def command(
    study: type[AbstractStudy], text: str | None, arguments: Sequence[str] | None = None
) -> None:
    """The command line of a study: an option for each of its fields.

    Args:
        study: Its class, a dataclass whose fields all have defaults.
        text: What its help says, before the help of the class.
        arguments: What the user said; the command line by default.
    """
    about, _, _ = (inspect.getdoc(study) or "").partition("Example:")
    parser = argparse.ArgumentParser(
        prog=f"python -m softcvi_experiments.{study.name}",
        description=f"{text}\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    fields = dataclasses.fields(cast(Any, study))
    for field in fields:
        add(f"--{field.name.replace('_', '-')}", **_option(field))
    jobs = 1 if study.timed else os.cpu_count() or 1
    add("--jobs", type=int, default=jobs, help="processes at a time")
    add("--timeout", type=float, default=study.timeout, help="seconds for each case")
    add("--limit", type=int, help="stop the study after so many seconds")
    add("--out", default=f"softcvi-{study.name}", help="output folder")
    told = parser.parse_args(arguments)
    made = study(**{field.name: getattr(told, field.name) for field in fields})
    with stopped_after(told.limit):
        run_study(made, told.out, jobs=told.jobs, timeout=told.timeout, report=say)
    say(f"wrote {os.path.join(told.out, study.name)}.md")


def _option(field: dataclasses.Field) -> dict[str, Any]:
    """How the command line reads a field."""
    names = field.metadata.get("choices")
    shown = {"default": field.default, "help": "default: %(default)s"}
    match field.default:
        case bool():
            return {"action": "store_true"}
        case int():
            return shown | {"type": int}
        case str():
            return shown | {"choices": names}
        case tuple() if names is None:
            return shown | {"type": numbers}
    if names is not None:
        shown["help"] = f"of {', '.join(names)}"
    return shown | {"nargs": "*", "choices": names, "metavar": "NAME"}
