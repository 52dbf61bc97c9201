"""The race: cold processes in turn, so that machine load affects all methods alike."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from softcvi.sweeps import RecordStore, provenance
from softcvi_experiments.children import (
    ChildError,
    environment,
    failed_record,
    run_child,
)
from softcvi_experiments.cold._table import IDENTITY, cold_page, describe
from softcvi_experiments.stopping import say, stopped_after
from softcvi_experiments.store import Record
from softcvi_experiments.tasks import PAPER_TASKS
from softcvi_experiments.zoo import names as zoo_names

_CHILD = Path(__file__).with_name("_child.py")
METHODS = (
    "fit",
    "nuts_parallel",
    "fit_until",
    "nuts_vectorized",
    "fit_warm",
    "fit_second",
    "floor",
    "floor_warm",
)
_WARM = ("fit_warm", "floor_warm")
_TIMEOUT = 600.0


@dataclasses.dataclass(frozen=True)
class Race:
    """What to run.

    Attributes:
        models: Names of tasks or zoo models; ``zoo`` stands for all of the latter.
        methods: Names of methods.
        repeats: Runs of each method on each model.
        quick: Whether to take tiny sizes that only show that it works.

    Example:
        >>> race = Race(("slcp",), ("fit", "floor"), repeats=2)
        >>> [(task["method"], task["run"]) for task in race.tasks()]
        [('fit', 0), ('floor', 0), ('floor', 1), ('fit', 1)]
    """

    models: Sequence[str] = PAPER_TASKS
    methods: Sequence[str] = METHODS
    repeats: int = 7
    quick: bool = False

    def __post_init__(self) -> None:
        known = (*PAPER_TASKS, *zoo_names(), "zoo")
        for name, given, allowed in (
            ("models", self.models, known),
            ("methods", self.methods, METHODS),
        ):
            unknown = [word for word in given if word not in allowed]
            if unknown:
                raise ValueError(
                    f"{name}: no {unknown[0]!r}; choose from: {', '.join(allowed)}."
                )
        if self.repeats < 1:
            raise ValueError("repeats: must be at least 1")

    def tasks(self) -> list[dict[str, Any]]:
        """All runs; each round begins with another method."""
        models = [
            name
            for given in self.models
            for name in (zoo_names() if given == "zoo" else (given,))
        ]
        return [
            {"model": model, "method": method, "run": run, "quick": self.quick}
            for run in range(self.repeats)
            for model in models
            for method in _rotated(self.methods, run)
        ]


def _rotated(items: Sequence[str], by: int) -> list[str]:
    by = by % len(items)
    return [*items[by:], *items[:by]]


def run_race(
    race: Race,
    out: str | Path,
    *,
    minutes: float | None = None,
    report: Callable[[str], None] = say,
) -> list[Record]:
    """Run what this commit has not run yet, one process at a time, and write the page.

    Args:
        race: What to run.
        out: Output folder: ``records.jsonl`` and ``cold.md``.
        minutes: Stop after so long; the same command goes on from there.
        report: Where a line per run goes.

    Returns:
        The latest record of each run.
    """
    store = RecordStore(out)
    done = {
        _identity(record)
        for record in store.all()
        if record["status"] == "ok"
        and record["made"]["commit"] == provenance()["commit"]
    }
    todo = [task for task in race.tasks() if _identity(task) not in done]
    limit = None if minutes is None else max(1, int(60 * minutes))
    with tempfile.TemporaryDirectory() as cache, _written(store):
        warm = _WarmCaches(Path(cache))
        with stopped_after(limit):
            for count, task in enumerate(todo, 1):
                record = _one(task, warm)
                store.add([record])
                report(f"[{count}/{len(todo)}] {describe(record)}")
    return store.latest(*IDENTITY)


@contextlib.contextmanager
def _written(store: RecordStore) -> Iterator[None]:
    """Write the page at the end, however that comes."""
    try:
        yield
    finally:
        records = store.latest(*IDENTITY)
        if records:
            (store.folder / "cold.md").write_text(cold_page(records))


def _one(task: dict[str, Any], warm: "_WarmCaches") -> Record:
    try:
        env = warm.environment(task) if task["method"] in _WARM else None
        found = _run(task, env)
    except ChildError as error:
        return failed_record(task, error)
    return {**task, "status": "ok", **found}


def _run(task: dict[str, Any], env: dict[str, str] | None = None) -> dict[str, Any]:
    words = task["method"], task["model"], task["run"], int(task["quick"])
    return run_child(_CHILD, *words, env=env, timeout=_TIMEOUT)


class _WarmCaches:
    """Folders of compiled programs, filled by a run before the first that counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def environment(self, task: dict[str, Any]) -> dict[str, str]:
        folder = self._folder / task["method"] / task["model"]
        env = environment(cache=folder)
        if task["method"] == "fit_warm":
            # As a user has it who has set nothing: the library's own cache.
            env = environment() | {"SOFTCVI_CACHE_DIR": str(folder)}
            del env["JAX_ENABLE_COMPILATION_CACHE"]
            env.pop("SOFTCVI_CACHE", None)
        if not folder.exists():
            folder.mkdir(parents=True)
            _run(task, env)
        return env


def _identity(record: dict[str, Any]) -> tuple:
    return tuple(record[name] for name in IDENTITY)
