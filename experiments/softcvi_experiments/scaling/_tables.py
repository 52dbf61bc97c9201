"""Tables of the study: growth, coefficients, exchange and predictions."""

from collections.abc import Callable, Sequence

from softcvi_experiments.bench._growth import slope
from softcvi_experiments.scaling._costs import BYTES, TERMS, Case, Costs, fit_costs
from softcvi_experiments.scaling._predict import (
    AbstractDevice,
    Accelerator,
    Core,
    Network,
    predict,
    row_bytes,
)
from softcvi_experiments.scaling._programs import WAYS
from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table

DEVICES = (8, 100, 1_000, 10_000)
WORKLOADS = {
    "10^9 rows, d = 20": Case("full-rank", 8, 20, rows=10**9),
    "2 x 10^9 rows, d = 1,000": Case("full-rank", 8, 1_000, rows=2 * 10**9),
}
_MEMORY = 64e9


def tables(records: list[Record]) -> dict[str, str]:
    """All tables by their names.

    Args:
        records: Cases with an answer.
    """
    made: dict[str, Callable[[list[Record]], str]] = {
        "scaling-growth": _growth,
        "scaling-costs": _seconds_table,
        "scaling-bytes": _bytes_table,
        "scaling-exchange": _exchange,
        "scaling-devices": _devices,
        "scaling-limits": _limits,
    }
    return {name: make(records) for name, make in made.items()}


def costs_of(records: list[Record], way: str) -> Costs:
    """Seconds of a step of one way, fitted to its records.

    Args:
        records: Cases with an answer.
        way: Whose.
    """
    found = _timed(records, way)
    seconds = [record["seconds_per_step"] for record in found]
    return fit_costs([_case(record) for record in found], seconds, list(TERMS))


def bytes_of(records: list[Record], way: str) -> Costs:
    """Bytes of a step of one way, fitted to its records.

    Args:
        records: Cases with an answer.
        way: Whose.
    """
    found = _timed(records, way)
    return fit_costs(
        [_case(record) for record in found], list(map(_bytes, found)), list(BYTES)
    )


def _growth(records: list[Record]) -> str:
    """Time and memory against dimension and groups, and slopes of the larger half."""
    ways = _ways(records)
    header = ["grows", "size", *(f"{way}, us" for way in ways)]
    header += [f"{way}, MB" for way in ways]
    rows = []
    for part, size in (("dimension", "dimension"), ("groups", "groups")):
        found = {
            (record["way"], record[size]): record
            for record in records
            if record["part"] == part
        }
        sizes = sorted({size for _, size in found})
        times = {
            way: [1e6 * found[way, n]["seconds_per_step"] for n in sizes]
            for way in ways
        }
        memory = {way: [_bytes(found[way, n]) for n in sizes] for way in ways}
        for i, n in enumerate(sizes):
            cells = [f"{times[way][i]:,.0f}" for way in ways]
            cells += [f"{memory[way][i] / 1e6:,.2f}" for way in ways]
            rows.append([part, f"{n:,}", *cells])
        slopes = [f"{slope(sizes, times[way]):.2f}" for way in ways]
        slopes += [f"{slope(sizes, memory[way]):.2f}" for way in ways]
        rows.append([part, "slope", *slopes])
    return markdown_table(header, rows, numbers=True)


def _seconds_table(records: list[Record]) -> str:
    ways = _ways(records)
    found = [costs_of(records, way) for way in ways]
    return _coefficients("nanoseconds for each", TERMS, ways, found, 1e9)


def _bytes_table(records: list[Record]) -> str:
    ways = _ways(records)
    found = [bytes_of(records, way) for way in ways]
    return _coefficients("bytes for each", BYTES, ways, found, 1.0)


def _coefficients(
    title: str,
    names: dict[str, str],
    ways: Sequence[str],
    found: Sequence[Costs],
    unit: float,
) -> str:
    rows = [
        [text, *(_three(unit * costs.each[name]) for costs in found)]
        for name, text in names.items()
    ]
    sizes = [sorted(abs(error) for error in costs.errors) for costs in found]
    rows.append(["measurements", *(str(len(size)) for size in sizes)])
    rows.append(["median error", *(f"{size[len(size) // 2]:.0%}" for size in sizes)])
    rows.append(["largest error", *(f"{size[-1]:.0%}" for size in sizes)])
    return markdown_table([title, *ways], rows, numbers=True)


def _exchange(records: list[Record]) -> str:
    header = ["step of", "K", "d", "all-reduces", "of them per block of rows", "bytes"]
    rows = [
        [
            r["way"],
            str(r["particles"]),
            str(r["dimension"]),
            str(r["outside_loops"] + r["inside_loops"]),
            str(r["inside_loops"]),
            f"{r['bytes']:,}",
        ]
        for r in sorted(
            (r for r in records if r["part"] == "exchange"),
            key=lambda r: (r["way"] != "SoftCVI", r["particles"], r["dimension"]),
        )
    ]
    return markdown_table(header, rows, numbers=True)


def _devices(records: list[Record]) -> str:
    header = ["posterior", "device", "step of", "devices", "rows of one, GB"]
    header += ["rows, ms", "repeated, ms", "all-reduce, ms", "step, ms", "efficiency"]
    rows = []
    for title, case in WORKLOADS.items():
        for kind, device, way in _kinds(records):
            for count in DEVICES:
                found = predict(device, Network(), case, count, way)
                parts = (found.rows, found.rest, found.exchange, found.seconds)
                rows.append(
                    [
                        title,
                        kind,
                        way,
                        f"{count:,}",
                        _three(found.bytes / 1e9),
                        *(_three(1e3 * seconds) for seconds in parts),
                        f"{found.efficiency:.0%}",
                    ]
                )
    return markdown_table(header, rows, numbers=True)


def _limits(records: list[Record]) -> str:
    """Sizes at which something ends, from coefficients and records."""
    [load] = [r for r in records if r["part"] == "load"]
    rate = load["bytes"] / load["seconds"]
    whole = sorted(
        (r for r in records if r["part"] == "whole"), key=lambda r: r["dimension"]
    )
    small, large = whole[-2:]
    each = (large["bytes"] - small["bytes"]) / (large["dimension"] - small["dimension"])
    memory = bytes_of(records, "SoftCVI").each
    dense = (_MEMORY / memory["parameters"]) ** 0.5
    title, case = next(iter(WORKLOADS.items()))
    rows = [
        ["host memory for all rows, in every process", title,
         f"{row_bytes(case) / 1e9:.0f} GB"],
        ["CPU time of checksum and placing, in every process", title,
         f"{row_bytes(case) / rate:.0f} s"],
        ["rows", "their numbers have 32 bits", f"{2**31:.1e}"],
        ["parameters of a full-rank normal", "64 GB for a step", _two(dense)],
        ["parameters of a mean-field normal", "64 GB for a step",
         f"{_MEMORY / (8 * memory['entries'] + 2 * memory['parameters']):.1e}"],
        ["parameters of a mean-field normal",
         "64 GB for the check of start and end", f"{_MEMORY / each:.1e}"],
    ]  # fmt: skip
    for kind, device, way in _kinds(records):
        half, most = _turning_points(device, case, way)
        rows.append([f"devices with efficiency 50 %, {way}, {kind}", title, half])
        rows.append([f"devices of the quickest step, {way}, {kind}", title, most])
    return markdown_table(["what ends", "where", "at"], rows)


def _turning_points(device: AbstractDevice, case: Case, way: str) -> tuple[str, str]:
    counts = sorted({round(10 ** (i / 50)) for i in range(401)})
    found = [predict(device, Network(), case, count, way) for count in counts]
    half = [one.devices for one in found if one.efficiency >= 0.5]
    quickest = min(found, key=lambda one: one.seconds)
    return _two(max(half)), _two(quickest.devices)


def _kinds(records: list[Record]) -> list[tuple[str, AbstractDevice, str]]:
    return [
        ("core", Core(costs_of(records, "SoftCVI")), "SoftCVI"),
        ("core", Core(costs_of(records, "ELBO")), "ELBO"),
        ("accelerator", Accelerator(), "SoftCVI"),
        ("accelerator", Accelerator(), "ELBO"),
    ]


def _timed(records: list[Record], way: str) -> list[Record]:
    return [r for r in records if r["way"] == way and "seconds_per_step" in r]


def _ways(records: list[Record]) -> list[str]:
    found = {r["way"] for r in records if "seconds_per_step" in r}
    return sorted(found, key=WAYS.index)


def _case(record: Record) -> Case:
    names = ("guide", "particles", "dimension", "rows", "groups")
    return Case(**{name: record[name] for name in names})


def _bytes(record: Record) -> int:
    return record["temporary_bytes"] + record["argument_bytes"]


def _two(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def _three(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
