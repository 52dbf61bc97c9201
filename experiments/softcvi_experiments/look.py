r"""What the wide search for modes costs where there is one mode.

``softcvi.fit`` at defaults, the same with a search that begins near the origin only,
and with a single Laplace start, on families of the verdict's study that have one mode,
each in a cold process of one thread without a compilation cache::

    python -m softcvi_experiments.look --out results/look --jobs 1

Times are CPU seconds of the call, compilation included.
"""

import dataclasses
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
import numpy as np

import softcvi
from softcvi_experiments.children import Task, environment
from softcvi_experiments.store import Record
from softcvi_experiments.study import AbstractStudy, answered, choices, command
from softcvi_experiments.tables import markdown_table
from softcvi_experiments.verdict import get_family

STARTS = {
    "search": "auto",
    "near": softcvi.starts.Explore(scales=(1.0,)),
    "Laplace": softcvi.starts.Laplace(),
}
FAMILIES = (
    "linear-raw-units",
    "linear-collinear-1e4",
    "linear-many-rows",
    "logistic",
    "binomial",
    "poisson",
    "survival",
    "hierarchy-non-centred",
    "rates",
    "autoregression",
    "random-walk",
    "decay",
    "normal-100",
)


def measure(family: str, seed: int, start: str) -> Record:
    """One fit, and whether it is right.

    Example:
        >>> record = measure("linear-raw-units", 0, "search")
        >>> record["right"], record["trusted"], record["seconds_cpu"] > 0
        (True, True, True)
    """
    posterior = get_family(family).posterior(seed)
    began, wall = time.process_time(), time.perf_counter()
    result = softcvi.fit(
        jax.random.key(seed),
        posterior.target,
        start=STARTS[start],
        progress=False,
        throw=False,
    )
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    draws = result.sample(jax.random.key(1), 8_000)
    return {
        "family": family,
        "seed": seed,
        "start": start,
        "parameters": posterior.num_parameters,
        "right": posterior.score(draws).right,
        "trusted": bool(result.verdict.trusted),
        "seconds_cpu": seconds,
        "seconds": wall,
        "seconds_start": result.seconds_start,
    }


def table(records: list[Record]) -> str:
    """Median times of all ways, and their ratios, family by family."""
    others = list(STARTS)[1:]
    header = ["family", "parameters", *(f"{name}, CPU s" for name in STARTS)]
    header += [f"search / {name}" for name in others]
    header += [f"{name}, right and trusted" for name in STARTS]
    rows, ratios = [], []
    for family in dict.fromkeys(r["family"] for r in records):
        times, good = [], []
        sizes = [r["parameters"] for r in records if r["family"] == family]
        for name in STARTS:
            same = [r for r in records if (r["family"], r["start"]) == (family, name)]
            times.append(float(np.median([r["seconds_cpu"] for r in same] or [np.nan])))
            fine = sum(r["right"] and r["trusted"] for r in same)
            good.append(f"{fine} of {len(same)}")
        ratios.append([times[0] / other for other in times[1:]])
        low, high = min(sizes), max(sizes)
        size = str(low) if low == high else f"{low} to {high}"
        shown = [f"{seconds:.1f}" for seconds in times]
        rows.append([family, size, *shown, *_shown(ratios[-1]), *good])
    medians = _shown(np.median(ratios, axis=0))
    rows.append(["median", "", *[""] * len(STARTS), *medians, *[""] * len(STARTS)])
    return markdown_table(header, rows)


def _shown(ratios: Iterable[float]) -> list[str]:
    return [f"{ratio:.2f}" for ratio in ratios]


@dataclasses.dataclass(frozen=True)
class Study(AbstractStudy):
    """All ways on each family.

    Attributes:
        families: Names of families.
        seeds: Posteriors of each.

    Example:
        >>> len(Study(("binomial",), (0, 1)).tasks())
        6
    """

    name = "look"
    worker = "softcvi_experiments.look:measure"
    identity = ("family", "seed", "start")
    fresh = True

    families: Sequence[str] = choices(FAMILIES, FAMILIES)
    seeds: Sequence[int] = (0, 1, 2)

    def tasks(self) -> list[Task]:
        """Each posterior in all ways, one after the other."""
        return [
            {"family": family, "seed": seed, "start": start}
            for family in self.families
            for seed in self.seeds
            for start in STARTS
        ]

    def groups(self, tasks: list[Task], out: Path) -> list[list[Task]]:
        """A process for each fit."""
        return [[task] for task in tasks]

    def environment(self, out: Path) -> dict[str, str]:
        """One thread, and no cache on disk."""
        return environment(threads=1)

    def page(self, records: list[Record]) -> str:
        """The table."""
        return f"# The cost of the search\n\n{table(answered(records))}\n"


if __name__ == "__main__":
    command(Study, __doc__)
