"""The study: methods on large posteriors."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import Task, environment
from softcvi_experiments.large._cases import CASES, get_case
from softcvi_experiments.large._methods import METHODS
from softcvi_experiments.large._moments import Moments
from softcvi_experiments.large._posterior import LargePosterior
from softcvi_experiments.large._table import describe, study_page
from softcvi_experiments.store import DrawStore, Record
from softcvi_experiments.study import AbstractStudy, choices


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run.

    Attributes:
        cases: Names of posteriors.
        methods: Names of methods.
        keys: Runs of the program on each posterior.
        small: Whether to take the small forms.
        pairs: Pairs of chains of the reference, each a process of its own.
        threads: 1, or 0 for all cores that a process may use.

    Example:
        >>> [task["method"] for task in Study(("walk-150",), ("nuts", "fit")).tasks()]
        ['nuts', 'fit']
    """

    name = "large"
    worker = "softcvi_experiments.large._worker:run_case"
    identity = ("case", "key", "small", "method", "kind")
    fresh = True
    timeout = 480.0

    cases: Sequence[str] = choices(CASES)
    methods: Sequence[str] = choices(METHODS)
    keys: Sequence[int] = (0,)
    small: bool = False
    pairs: int = 4
    threads: int = 1

    def tasks(self) -> list[Task]:
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

    def case_of(self, record: Record) -> tuple:
        method = record.get("task", record["method"])
        return record["case"], record["key"], record["small"], method

    def groups(self, tasks: list[Task], out: Path) -> list[list[Task]]:
        """Each run by itself, but the ELBO after the fit whose time it is given."""
        groups: dict[tuple, list[Task]] = {}
        for task in tasks:
            kind = "fit" if task["method"] == "elbo" else task["method"]
            group = groups.setdefault((task["case"], task["key"], kind), [])
            group.append({**task, "out": str(out)})
        return list(groups.values())

    def environment(self, out: Path) -> dict[str, str]:
        return environment(threads=self.threads or None)

    def records_of(self, task: Task, result: dict[str, Any]) -> list[Record]:
        failed = {k: v for k, v in result.items() if k != "out"}
        runs = result.get("runs", [failed])
        return [{"kind": "run", "task": task["method"], **run} for run in runs]

    def describe(self, record: Record) -> str:
        return describe(record)

    def page(self, records: list[Record]) -> str:
        return study_page(records)

    def finish(self, store: RecordStore) -> list[Record]:
        """Compare all runs with the right answers; the page shows the scores."""
        scores = _scores(store, DrawStore(store.folder), self.identity)
        if scores:
            store.add([score for score in scores if not store.find(score)])
            (store.folder / f"{self.name}.md").write_text(self.page(scores))
        return scores


def _scores(
    store: RecordStore, moments: DrawStore, identity: Sequence[str]
) -> list[Record]:
    """Every run with its distance from the right answer, where that is known.

    Files of moments are not part of the repository: without them the scores are those
    that the records have.
    """
    latest = store.latest(*identity)
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
