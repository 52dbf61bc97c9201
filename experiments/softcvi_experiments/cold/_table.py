"""Records of cold runs as lines and tables."""

from collections.abc import Sequence

import numpy as np

from softcvi_experiments.cold._problems import title_of
from softcvi_experiments.store import Record
from softcvi_experiments.tables import markdown_table

IDENTITY = ("model", "method", "run", "quick")
TITLES = {
    "fit": "`fit`",
    "fit_until": "`fit_until`",
    "nuts_parallel": "NUTS, parallel",
    "nuts_vectorized": "NUTS, vectorised",
    "fit_warm": "`fit`, programs on disk",
    "fit_second": "second `fit` in a process, less its steps",
    "floor": "bare program",
    "floor_warm": "bare program, on disk",
}
_PHASES = ("import", "trace", "lower", "compile")


def describe(record: Record) -> str:
    """A record in one line.

    Example:
        >>> describe({"model": "slcp", "method": "fit", "run": 0, "status": "error",
        ...           "message": "exit status 1"})
        'slcp fit run 0: ERROR exit status 1'
    """
    head = f"{record['model']} {record['method']} run {record['run']}"
    if record["status"] != "ok":
        return f"{head}: ERROR {record['message'].splitlines()[0]}"
    return (
        f"{head}: {_seconds(record):.2f} s, {record['cpu']:.1f} s of all cores, "
        f"{record['programs']} programs, {record['verdict']}"
    )


def cold_table(records: Sequence[Record]) -> str:
    """Median seconds with their range, by model and method.

    Args:
        records: Latest records.

    Example:
        >>> run = {"model": "slcp", "method": "fit", "status": "ok", "trusted": True,
        ...        "seconds_wall": 5.0}
        >>> print(cold_table([run]).splitlines()[2])
        | SLCP    | 5.0 (5.0 to 5.0) |
    """
    methods = [method for method in TITLES if _of(records, method=method)]
    models = list(dict.fromkeys(record["model"] for record in records))
    rows = [
        [
            title_of(model),
            *(_cell(_of(records, model=model, method=m)) for m in methods),
        ]
        for model in models
    ]
    header = ["seconds", *(TITLES[method] for method in methods)]
    return markdown_table(header, rows, numbers=True)


def phases_table(records: Sequence[Record]) -> str:
    """Where the seconds go: medians by model and method.

    Args:
        records: Latest records.
    """
    rows = []
    for model in dict.fromkeys(record["model"] for record in records):
        for method in TITLES:
            found = _of(records, model=model, method=method)
            if not found:
                continue
            phases = [_median(r["phases"][p] for r in found) for p in _PHASES]
            # Phases overlap where programs are compiled on threads.
            rest = _median(
                r["seconds_wall"] - r["phases"]["import"] - r["jax"] for r in found
            )
            numbers: list[float | None] = [
                *phases,
                rest,
                _median(r["cpu"] for r in found),
            ]
            if method == "fit_second":  # its process has another run before it
                numbers = [None, *phases[1:], None, None]
            programs = f"{_median(r['programs'] for r in found):.0f}"
            cells = ["" if n is None else f"{n:.1f}" for n in numbers]
            rows.append([title_of(model), TITLES[method], programs, *cells])
    header = ["model", "method", "programs", *_PHASES, "rest", "CPU"]
    return markdown_table(header, rows, numbers=True)


def cold_page(records: Sequence[Record]) -> str:
    """Both tables, with the command and the machine behind them.

    Args:
        records: Latest records.
    """
    good = [record for record in records if record["status"] == "ok"]
    failed = [describe(r) for r in records if r["status"] != "ok"]
    made = records[-1]["made"]
    counts = [len(_of(good, model=r["model"], method=r["method"])) for r in good]
    runs = max(counts, default=0)
    note = (
        f"Medians of up to {runs} runs, with their range. `{made['command']}` on "
        f"{made['processor']}, {made['cores']} cores, {made['date'][:10]}, softcvi "
        f"{made['commit']}, JAX {made['jax']}."
    )
    if any(record["quick"] for record in good):
        note += " Quick form: the numbers mean nothing."
    return "\n\n".join([cold_table(good), phases_table(good), note, *failed]) + "\n"


def _of(records: Sequence[Record], **wanted: str) -> list[Record]:
    return [
        r
        for r in records
        if r["status"] == "ok" and all(r[k] == v for k, v in wanted.items())
    ]


def _seconds(record: Record) -> float:
    if "seconds_second" in record:
        return record["seconds_second"] - record["parts"]["seconds_run"]
    return record["seconds_wall"]


def _cell(records: Sequence[Record]) -> str:
    if not records:
        return ""
    seconds = [_seconds(record) for record in records]
    low, high = min(seconds), max(seconds)
    words = f"{np.median(seconds):.1f} ({low:.1f} to {high:.1f})"
    trusted = [record["trusted"] for record in records if record["trusted"] is not None]
    if all(trusted):
        return words
    return f"{words}, {sum(trusted)} of {len(trusted)} trusted"


def _median(values) -> float:
    return float(np.median(list(values)))
