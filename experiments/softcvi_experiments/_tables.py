"""Published, ours and the maximum likelihood fit, side by side."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcvi_experiments._published import published, published_gap
from softcvi_experiments._settings import Settings
from softcvi_experiments.figures import quartiles
from softcvi_experiments.tables import markdown_table

Record = dict[str, Any]
_HEADER = (
    "task", "method", "metric", "published", "ours", "maximum likelihood", "runs",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the comparison.

    Args:
        task: The task's name.
        method: The method's name.
        metric: What is compared.
        published: The paper's quartiles, or its median alone, or nothing.
        ours: Our quartiles.
        limit: Score of the family's maximum likelihood fit to reference draws.
        runs: Number of our runs.

    Example:
        >>> row = Row("garch", "elbo", "log prob", None, (1.0, 2.0, 3.0), None, 3)
        >>> row.cells()[4]
        '2.000 (1.000, 3.000)'
    """

    task: str
    method: str
    metric: str
    published: tuple[float, ...] | None
    ours: tuple[float, ...]
    limit: float | None
    runs: int

    def cells(self) -> tuple[str, ...]:
        """The line as text.

        Example:
            >>> Row("a", "b", "c", (1.5,), (1.0,), 2.0, 3).cells()[3:6]
            ('1.500', '1.000', '2.000')
        """
        limit = None if self.limit is None else (self.limit,)
        return (
            self.task,
            self.method,
            self.metric,
            _spread(self.published),
            _spread(self.ours),
            _spread(limit),
            str(self.runs),
        )


def compare(
    records: Iterable[Record], settings: Settings, limits: dict[str, float]
) -> list[Row]:
    """Gather records by task and method and set them beside the published numbers.

    Args:
        records: Records of runs with these settings.
        settings: What they were run with.
        limits: Mean log probability of the maximum likelihood fit, by data set.

    Example:
        >>> compare([], Settings(), {})
        []
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["task"], record["method"]), []).append(record)
    return [
        row
        for (task, method), group in groups.items()
        for row in _rows(task, method, group, settings, limits)
    ]


def _rows(
    task: str,
    method: str,
    group: list[Record],
    settings: Settings,
    limits: dict[str, float],
) -> list[Row]:
    theirs = published(task, method, settings) or {}

    def row(metric: str, name: str, limit: float | None) -> Row:
        quartiles = theirs.get(name)
        return Row(
            task,
            method,
            metric,
            None if quartiles is None else tuple(quartiles),
            _quartiles([record[name] for record in group]),
            limit,
            len(group),
        )

    rows = [
        row("log probability", "log_prob_reference", _median_limit(group, limits)),
        row("mean accuracy", "posterior_mean_accuracy", 0.0),
    ]
    if all(record["log_prob_limit"] is not None for record in group):
        gap = published_gap(method, settings)
        ours = _quartiles(
            [
                record["log_prob_limit"] - _or_worst(record["log_prob_reference"])
                for record in group
            ]
        )
        theirs_gap = None if gap is None else (gap,)
        rows.append(
            Row(task, method, "gap to optimum", theirs_gap, ours, 0.0, len(group))
        )
    for level in ("0.5", "0.9"):
        offset = theirs.get("coverage_minus_nominal", {}).get(level)
        rows.append(
            Row(
                task,
                method,
                f"coverage - {level}",
                None if offset is None else (offset,),
                (coverage_offset(group, float(level)),),
                0.0,
                len(group),
            )
        )
    return rows


def _median_limit(group: list[Record], limits: dict[str, float]) -> float | None:
    values = [
        record["log_prob_limit"]
        if record["log_prob_limit"] is not None
        else limits.get(record["data_set"])
        for record in group
    ]
    return None if None in values else float(np.median(np.array(values, float)))


def coverage_offset(group: Sequence[Record], level: float) -> float:
    """Average over runs of actual minus nominal coverage, as the paper draws it."""
    offsets = [
        np.interp(level, record["coverage_nominal"], record["coverage_actual"]) - level
        for record in group
    ]
    return float(np.mean(offsets))


def _quartiles(values: list[float | None]) -> tuple[float, float, float]:
    # A fit that failed or misses reference draws altogether is the worst there is.
    return quartiles(np.array([_or_worst(value) for value in values]))


def _or_worst(value: float | None) -> float:
    return -math.inf if value is None else value


def _spread(values: tuple[float, ...] | None) -> str:
    if values is None:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.3f}"
    low, middle, high = values
    return f"{middle:.3f} ({low:.3f}, {high:.3f})"


def as_markdown(rows: list[Row]) -> str:
    """Lay the comparison out as a Markdown table.

    Args:
        rows: Its lines.

    Example:
        >>> print(as_markdown([Row("a", "b", "c", None, (1.0,), None, 1)]))
        | task | method | metric | published | ours  | maximum likelihood | runs |
        | ---- | ------ | ------ | --------- | ----- | ------------------ | ---- |
        | a    | b      | c      | -         | 1.000 | -                  | 1    |
    """
    return markdown_table(_HEADER, [row.cells() for row in rows])
