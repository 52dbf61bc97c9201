"""Answers beside reference moments, and the table."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from softcvi_experiments.children import Task
from softcvi_experiments.simulators._methods import METHODS
from softcvi_experiments.simulators._models import SIMULATORS
from softcvi_experiments.simulators._reference import moments
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices
from softcvi_experiments.tables import markdown_table

_TRUST = {True: "yes", False: "no", None: "says nothing"}


@dataclass(frozen=True)
class Comparison:
    """One method on one simulator.

    Attributes:
        simulator: Its name.
        method: Name of the method.
        seed: Seed of the method.
        evaluations: Log densities evaluated.
        trusted: What the method says of its answer; None if nothing.
        mean_off: Largest difference of a mean, in standard deviations.
        sd_low: Smallest ratio of standard deviations.
        sd_high: Largest ratio.
        seconds: CPU time of the method, compilation included.

    Example:
        >>> row = Comparison("drug", "fit", 0, 100, True, 0.05, 0.95, 1.02, 3.0)
        >>> row.is_right
        True
    """

    simulator: str
    method: str
    seed: int
    evaluations: int
    trusted: bool | None
    mean_off: float
    sd_low: float
    sd_high: float
    seconds: float

    @property
    def is_right(self) -> bool:
        """Means within 0.1 standard deviations, standard deviations within 10 %."""
        return self.mean_off <= 0.1 and self.sd_low >= 0.9 and self.sd_high <= 1.1


def measure(**case: Any) -> Record:
    """The record of a comparison.

    Args:
        **case: Arguments of ``compare``.
    """
    made = compare(**case)
    return {**asdict(made), "right": made.is_right}


def compare(simulator: str, method: str, seed: int = 0) -> Comparison:
    """Run one method on one simulator and compare with the reference.

    Args:
        simulator: One of ``SIMULATORS``.
        method: One of ``METHODS``.
        seed: Seed of the method.

    Example:
        >>> from softcvi_experiments import simulators
        >>> simulators.compare("drug", "ask and tell").is_right  # doctest: +SKIP
        True
    """
    model = SIMULATORS[simulator]
    mean, sd, _ = moments(model)
    began = time.process_time()
    answer = METHODS[method](model, seed)
    seconds = time.process_time() - began
    found = answer.weights @ answer.points
    spread = np.sqrt(answer.weights @ (answer.points - found) ** 2)
    return Comparison(
        simulator=simulator,
        method=method,
        seed=seed,
        evaluations=answer.evaluations,
        trusted=answer.trusted,
        mean_off=float(np.max(np.abs(found - mean) / sd)),
        sd_low=float(np.min(spread / sd)),
        sd_high=float(np.max(spread / sd)),
        seconds=round(seconds, 1),
    )


def page(records: list[Record]) -> str:
    """A table with a row for each record.

    Args:
        records: The last record of each simulator, method and seed.

    Example:
        >>> row = Comparison("drug", "fit", 0, 100, True, 0.05, 0.95, 1.02, 3.0)
        >>> cells = page([asdict(row)]).splitlines()[2].split("|")
        >>> [cell.strip() for cell in cells[1:6]]
        ['drug', 'fit', '0', '100', 'yes']
    """
    header = ["simulator", "method", "seed", "evaluations", "trusted"]
    header += ["means off (sd)", "ratio of sds", "CPU seconds"]
    order = {name: i for i, name in enumerate(METHODS)}
    rows = [
        [
            r["simulator"],
            r["method"],
            str(r["seed"]),
            f"{r['evaluations']:,}",
            _TRUST[r["trusted"]],
            f"{r['mean_off']:.3f}",
            f"{r['sd_low']:.2f} to {r['sd_high']:.2f}",
            f"{r['seconds']:.0f}",
        ]
        for r in sorted(
            records, key=lambda r: (r["simulator"], order[r["method"]], r["seed"])
        )
    ]
    return markdown_table(header, rows) + "\n"


@dataclass(frozen=True)
class Study(AbstractStudy):
    """What to run.

    Attributes:
        simulators: Names of simulators.
        methods: Names of methods.
        seeds: Runs of each method on each simulator.

    Example:
        >>> len(Study(["drug"], ["fit", "SMC"], range(3)).tasks())
        6
    """

    name = "simulators"
    worker = "softcvi_experiments.simulators._compare:measure"
    identity = ("simulator", "method", "seed")
    timeout = 3600.0
    timed = True

    simulators: Sequence[str] = choices(SIMULATORS)
    methods: Sequence[str] = choices(METHODS)
    seeds: Sequence[int] = (0,)

    def tasks(self) -> list[Task]:
        cases = itertools.product(self.simulators, self.methods, self.seeds)
        return [dict(zip(self.identity, case, strict=True)) for case in cases]

    def outcome(self, record: Record) -> str:
        return (
            "{evaluations} evaluations, means off {mean_off:.3f} sd, "
            "{seconds:.0f} s".format(**record)
        )

    def page(self, records: list[Record]) -> str:
        return page(answered(records))
