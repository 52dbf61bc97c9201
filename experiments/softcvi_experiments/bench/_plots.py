"""Results as pictures. Matplotlib is imported when one is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments.tasks import get_task

Payload = dict[str, Any]
_OURS, _THEIRS, _ACCENT = "#0072b2", "#9aa0a6", "#d55e00"
_COLOURS = (_OURS, _ACCENT, "#009e73", "#cc79a7")
_LABELS = {
    "particles": "particles K",
    "dimension": "dimension",
    "large": "parameters",
    "groups": "groups",
    "depth": "flow layers",
    "fits": "fits in one program",
    "data": "data points",
}


def _figure(panels: int, width: float = 5.4, height: float = 4.2):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, max(1, panels))
    lines = -(-max(1, panels) // columns)
    figure = Figure(figsize=(width * columns, height * lines), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[panels:]:
        axis.set_axis_off()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def _bars(
    axis,
    labels: list[str],
    values: list[float],
    title: str,
    xlabel: str,
    log: bool = False,
):
    from matplotlib.ticker import LogLocator, NullFormatter

    colours = [_OURS if "softcvi" in label else _THEIRS for label in labels]
    rows = np.arange(len(labels))
    axis.barh(rows, values, color=colours, height=0.7)
    for row, value in zip(rows, values, strict=True):
        axis.annotate(
            f" {value:,.3g}", (value, row), va="center", fontsize=7, color="#333333"
        )
    axis.set_yticks(rows, labels, fontsize=7)
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.set(title=title, xlabel=xlabel)
    if log:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())


@own_settings()
def draw_peers(payload: Payload, path: Path) -> None:
    """Time per step relative to ours, and our overhead.

    Args:
        payload: A result of the suite.
        path: Where to save.
    """
    parts = payload["parts"]
    problems, overhead = parts.get("steps", []), parts.get("overhead", [])
    figure, axes = _figure(len(problems) + bool(overhead), width=6.2)
    for axis, problem in zip(axes, problems, strict=False):
        rows = [row for row in problem["rows"] if row["status"] == "ok"]
        labels = [row["label"] for row in rows]
        ratios = [row["ratio"] for row in rows]
        title = problem["title"]
        _bars(axis, labels, ratios, title, "time per step, ours = 1", log=True)
    if overhead:
        axis = axes[len(problems)]
        labels = [f"softcvi, {get_task(row['task']).title}" for row in overhead]
        title = "bar, history and stopping rule"
        xlabel = f"loop / bare loop, limit {overhead[0]['limit']}"
        _bars(axis, labels, [row["ratio"] for row in overhead], title, xlabel)
    figure.savefig(path, dpi=130)


@own_settings()
def draw_growth(payload: Payload, path: Path) -> None:
    """Cost against size on log scales, with slopes; memory beside its bound.

    Args:
        payload: A result of the suite.
        path: Where to save.
    """
    parts = payload["parts"]
    present = [part for part in _LABELS if parts.get(part)]
    memory = parts.get("memory", [])
    figure, axes = _figure(len(present) + bool(memory))
    for axis, part in zip(axes, present, strict=False):
        for curve, colour in zip(parts[part], _COLOURS, strict=False):
            label = f"{curve['label']} (slope {curve['slope']:.2f})"
            sizes, costs = np.array(curve["sizes"]), np.array(curve["us_a_step"])
            axis.plot(sizes, costs, "o-", color=colour, label=label)
            line = costs[-1] * sizes / sizes[-1]
            shown = line >= 0.5 * costs.min()
            axis.plot(sizes[shown], line[shown], ":", color=colour, alpha=0.6)
        axis.set(
            xscale="log", yscale="log", xlabel=_LABELS[part], ylabel="us per step",
            title="dotted: slope 1",
        )  # fmt: skip
        axis.legend(fontsize=8, frameon=False)
    if memory:
        axis = axes[len(present)]
        rows = np.arange(len(memory))
        growth = [row["growth_mib"] for row in memory]
        axis.barh(rows - 0.2, growth, 0.36, color=_OURS, label="growth of the peak")
        bounds = [row["bound_mib"] for row in memory]
        axis.barh(rows + 0.2, bounds, 0.36, color=_THEIRS, label="bound")
        axis.set_yticks(rows, [f"{row['large']:,}\n{row['what']}" for row in memory])
        axis.set(xlabel="MiB", title="peak memory")
        axis.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=130)


@own_settings()
def draw_compile(payload: Payload, path: Path) -> None:
    """Seconds of imports, compilation and first steps.

    Args:
        payload: A result of the suite.
        path: Where to save.
    """
    parts = payload["parts"]
    figure, axes = _figure(2)
    if parts.get("imports"):
        names = {"reference": "jax, equinox, flowjax", "softcvi": "softcvi"}
        seconds = [parts["imports"][name] for name in names]
        _bars(axes[0], list(names.values()), seconds, "import", "seconds")
    if parts.get("tasks"):
        rows = np.arange(len(parts["tasks"]))
        ways = (("cold", _ACCENT, -0.2), ("warm", _OURS, 0.2))
        for way, colour, offset in ways:
            values = [row[way]["seconds_to_first_step"] for row in parts["tasks"]]
            axes[1].barh(rows + offset, values, 0.36, color=colour, label=way)
        axes[1].set_yticks(rows, [get_task(r["task"]).title for r in parts["tasks"]])
        axes[1].set(xlabel="seconds", title="from the import to the first step")
        axes[1].legend(frameon=False)
    figure.savefig(path, dpi=130)


@own_settings()
def draw_figure(payload: Payload, path: Path) -> None:
    """Microseconds per step of one fit and of many at once.

    Args:
        payload: A result of the suite.
        path: Where to save.
    """
    one = payload["parts"].get("one", [])
    many = payload["parts"].get("many", {"rows": []})["rows"]
    figure, axes = _figure(bool(one) + bool(many))
    panels = iter(axes)
    if one:
        titles = [get_task(row["task"]).title for row in one]
        costs = [row["us_a_step"] for row in one]
        _bars(next(panels), titles, costs, "one fit", "us per step", log=True)
    if many:
        labels = [f"{get_task(r['task']).title}, {r['method']}" for r in many]
        title = f"{many[0]['fits']} fits at once"
        costs = [row["us_a_step"] for row in many]
        _bars(next(panels), labels, costs, title, "us per step", log=True)
    figure.savefig(path, dpi=130)


PLOTS: dict[str, Callable[[Payload, Path], None]] = {
    "peers": draw_peers,
    "growth": draw_growth,
    "compile": draw_compile,
    "figure": draw_figure,
}
