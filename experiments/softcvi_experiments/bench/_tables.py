"""Results as Markdown tables."""

from collections.abc import Callable, Sequence
from typing import Any

from softcvi_experiments.tables import markdown_table
from softcvi_experiments.tasks import get_task

Payload = dict[str, Any]
_AXES = {
    "particles": "particles K",
    "dimension": "dimension",
    "large": "parameters",
    "groups": "groups",
    "depth": "flow layers",
    "fits": "fits in one program",
    "data": "data points",
}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(header, rows, numbers=True)


def _number(value: float | None, suffix: str = "") -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{suffix}"


def _title(task: str) -> str:
    return get_task(task).title


def peers_tables(payload: Payload) -> list[str]:
    """Steps and overhead.

    Args:
        payload: A result of the suite.
    """
    parts, found = payload["parts"], []
    for problem in parts.get("steps", ()):
        rows = [
            [
                row["label"],
                *(
                    (
                        _number(row["ratio"], "x"),
                        _number(row["us_a_step"]),
                        _number(row["seconds_first_call"]),
                    )
                    if row["status"] == "ok"
                    else (row["status"], "", "")
                ),
            ]
            for row in problem["rows"]
        ]
        found += [
            f"**{problem['title']}**, K = {problem['num_particles']}, "
            f"{problem['steps']:,} steps",
            _table(["loop", "time per step", "us per step", "first call, s"], rows),
        ]
    if parts.get("overhead"):
        rows = [
            [
                _title(row["task"]),
                _number(row["ratio"]),
                _number(row["ratio_host"]),
                *(_number(row["us_a_step"][way]) for way in ("bare", "full")),
            ]
            for row in parts["overhead"]
        ]
        header = ["bar + history + stopping", "/ bare loop", "/ loop without bar",
                  "bare, us per step", "all, us per step"]  # fmt: skip
        found.append(_table(header, rows))
    return found


def growth_tables(payload: Payload) -> list[str]:
    """Costs and slopes, and peak memory.

    Args:
        payload: A result of the suite.
    """
    rows, found = [], []
    for part, axis in _AXES.items():
        for curve in payload["parts"].get(part, ()):
            sizes, costs = curve["sizes"], curve["us_a_step"]
            span = f"{sizes[0]:,} to {sizes[-1]:,}"
            cost = f"{_number(costs[0])} to {_number(costs[-1])}"
            rows.append([axis, curve["label"], span, cost, f"{curve['slope']:.2f}"])
    if rows:
        header = ["cost against", "of", "from", "us per step", "slope, larger half"]
        found.append(_table(header, rows))
    if payload["parts"].get("memory"):
        header = ["memory of", "growth, MiB", "returned, MiB", "bound, MiB"]
        names = {"history": "history of {:,} steps", "particles": "{:,} particles"}
        rows = [
            [
                names[row["what"]].format(row["large"]),
                *(_number(row[k]) for k in ("growth_mib", "returned_mib", "bound_mib")),
            ]
            for row in payload["parts"]["memory"]
        ]
        found.append(_table(header, rows))
    return found


def compile_tables(payload: Payload) -> list[str]:
    """Imports, compilation and first steps.

    Args:
        payload: A result of the suite.
    """
    found = []
    imports = payload["parts"].get("imports")
    if imports:
        cells = [_number(imports[k]) for k in ("reference", "softcvi", "ratio")]
        header = ["import", "jax, equinox, flowjax, s", "softcvi, s", "ratio"]
        found.append(_table(header, [["seconds", *cells]]))
    tasks = payload["parts"].get("tasks")
    if tasks:
        header = ["task", "compilation, s", "first step, s",
                  "first step, second process, s"]  # fmt: skip
        rows = [
            [
                _title(row["task"]),
                _number(row["cold"]["seconds_compile"]),
                _number(row["cold"]["seconds_to_first_step"]),
                _number(row["warm"]["seconds_to_first_step"]),
            ]
            for row in tasks
        ]
        found.append(_table(header, rows))
    return found


def figure_tables(payload: Payload) -> list[str]:
    """Microseconds per step by task, and the time of the whole figure.

    Args:
        payload: A result of the suite.
    """
    one = {row["task"]: row for row in payload["parts"].get("one", ())}
    many = payload["parts"].get("many", {"rows": []})
    tasks = list(dict.fromkeys([*one, *(row["task"] for row in many["rows"])]))
    methods = list(dict.fromkeys(row["method"] for row in many["rows"]))
    cells = {(row["task"], row["method"]): row["us_a_step"] for row in many["rows"]}
    fits = many["rows"][0]["fits"] if many["rows"] else 0
    rows = [
        [
            _title(task),
            _number(one.get(task, {}).get("us_a_step")),
            *(_number(cells.get((task, method))) for method in methods),
        ]
        for task in tasks
    ]
    header = ["us per step", "one fit", *(f"{fits} fits, {m}" for m in methods)]
    found = [_table(header, rows)]
    if many["rows"]:
        how = "measured" if many["measured"] else "estimated from these"
        found.append(
            f"{len(tasks)} tasks x {len(methods)} methods x {fits} runs x "
            f"{many['figure_steps']:,} steps: {many['seconds_figure']:,.0f} s with "
            f"compilation ({how})."
        )
    return found


TABLES: dict[str, Callable[[Payload], list[str]]] = {
    "peers": peers_tables,
    "growth": growth_tables,
    "compile": compile_tables,
    "figure": figure_tables,
}
