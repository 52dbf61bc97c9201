"""The study: methods on large posteriors, in child processes, resumable."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import (
    ChildError,
    environment,
    failed_record,
    run_tasks,
)
from softcvi_experiments.large._cases import CASES, get_case
from softcvi_experiments.large._methods import METHODS
from softcvi_experiments.large._moments import Moments
from softcvi_experiments.large._posterior import LargePosterior
from softcvi_experiments.large._table import describe, study_page
from softcvi_experiments.store import DrawStore, Record

_WORKER = "softcvi_experiments.large._worker"
_IDENTITY = ("case", "key", "small", "method", "kind")


@dataclasses.dataclass(frozen=True)
class Study:
    """What to run.

    Attributes:
        cases: Names of posteriors.
        methods: Names of methods.
        keys: Runs of the program on each posterior.
        small: Whether to take the small forms.
        pairs: Pairs of chains of the reference, each a process of its own.

    Example:
        >>> [task["method"] for task in Study(("walk-150",), ("nuts", "fit")).tasks()]
        ['nuts', 'fit']
    """

    cases: Sequence[str] = tuple(CASES)
    methods: Sequence[str] = tuple(METHODS)
    keys: Sequence[int] = (0,)
    small: bool = False
    pairs: int = 4

    def tasks(self) -> list[dict[str, Any]]:
        """Every run, in the order of the methods as given."""
        unknown = set(self.cases) - set(CASES)
        if unknown:
            raise ValueError(f"cases: no {sorted(unknown)}; there are {list(CASES)}.")
        return [
            {"case": case, "method": method, "key": key, "small": self.small}
            for method in self.methods
            for case in self.cases
            for key in self._keys(case, method)
        ]

    def _keys(self, case: str, method: str) -> Sequence[int]:
        if method == "reference":
            return range(self.pairs)
        # The funnel is asked for five times: answers differ from seed to seed.
        return range(5) if case == "funnel-10" else self.keys


def run_study(
    study: Study,
    out: str | Path,
    *,
    jobs: int = 1,
    timeout: float = 480.0,
    threads: int | None = 1,
    report: Callable[[str], None] = print,
) -> list[Record]:
    """Run what is not in the folder yet, compare all with the answers, write the page.

    Args:
        study: What to run.
        out: Output folder.
        jobs: Processes at a time.
        timeout: Seconds for each run.
        threads: 1, or None for all cores that a process may use.
        report: Where a line per run goes.

    Returns:
        The scores, one for each run.
    """
    store = RecordStore(out)
    done = {_task_of(r) for r in store.all() if r["status"] != "error"}
    todo = [task for task in study.tasks() if _task_of(task) not in done]
    env = environment(threads=threads)
    groups = _groups([{**task, "out": str(out)} for task in todo])
    results = run_tasks(
        _WORKER, groups, jobs=jobs, timeout=timeout, env=env, fresh=True
    )
    try:
        for count, (task, result) in enumerate(results, 1):
            if isinstance(result, ChildError):
                failed = {k: v for k, v in task.items() if k != "out"}
                found = [failed_record(failed, result)]
            else:
                found = result["runs"]
            found = [{"kind": "run", "task": task["method"], **run} for run in found]
            store.add(found)
            for run in found:
                report(f"[{count}/{len(todo)}] {describe(run)}")
    finally:
        # An interrupted study still shows what it has.
        scores = _scores(store, DrawStore(out))
        if scores:
            store.add([score for score in scores if not store.find(score)])
            (Path(out) / "large.md").write_text(study_page(scores))
    return scores


def _groups(tasks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Each run by itself, but the ELBO after the fit whose time it is given."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for task in tasks:
        kind = "fit" if task["method"] == "elbo" else task["method"]
        groups.setdefault((task["case"], task["key"], kind), []).append(task)
    return list(groups.values())


def _task_of(record: Record) -> tuple:
    method = record.get("task", record["method"])
    return record["case"], record["key"], record["small"], method


def _scores(store: RecordStore, moments: DrawStore) -> list[Record]:
    """Every run with its distance from the right answer, where that is known.

    Files of moments are not part of the repository: without them the scores are those
    that the records have.
    """
    latest = store.latest(*_IDENTITY)
    runs = [r for r in latest if r["kind"] == "run"]
    known = {_run_of(r): r for r in latest if r["kind"] == "score"}
    found = {_run_of(r): moments.get(_named(r)) for r in runs if r["status"] == "ok"}
    scores = []
    for case, small in dict.fromkeys((r["case"], r["small"]) for r in runs):
        of_case = [r for r in runs if (r["case"], r["small"]) == (case, small)]
        posterior = get_case(case, small=small)
        right, evidence = _right_answer(posterior, of_case, found)
        for run in of_case:
            arrays = found.get(_run_of(run))
            if (right is None or arrays is None) and _run_of(run) in known:
                scores.append(known[_run_of(run)])
                continue
            score = {
                **run,
                "kind": "score",
                "bounds": dataclasses.asdict(posterior.bounds),
                "right_log_evidence": evidence,
                "answer": "long chains" if posterior.mean is None else "exact",
            }
            if right is not None and arrays is not None:
                found_moments = Moments.from_arrays(arrays)
                score |= found_moments.compare(right, posterior.bounds)
            scores.append(score)
    return scores


def _right_answer(
    posterior: LargePosterior, runs: list[Record], found: dict[tuple, Any]
) -> tuple[Moments | None, float | None]:
    """Exact moments and log evidence, or those of the reference's chains."""
    if posterior.mean is not None:
        assert posterior.sd is not None
        return Moments(posterior.mean, posterior.sd, np.inf), posterior.log_evidence
    chains = [r for r in runs if r["method"] == "reference" and found.get(_run_of(r))]
    if not chains:
        return None, None
    right = Moments.joined(Moments.from_arrays(found[_run_of(r)]) for r in chains)
    evidence = [r["log_evidence"] for r in chains if r.get("log_evidence")]
    return right, float(np.mean(evidence)) if evidence else None


def _named(run: Record) -> dict[str, Any]:
    return {name: run[name] for name in ("case", "key", "small", "method")}


def _run_of(run: Record) -> tuple:
    return tuple(_named(run).values())
