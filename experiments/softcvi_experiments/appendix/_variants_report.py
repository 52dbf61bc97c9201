"""Figure and table of variants: three metrics on every task."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments._tables import coverage_offset
from softcvi_experiments.appendix._variants import DEFAULTS
from softcvi_experiments.figures import (
    METHOD_COLOURS,
    draw_boxes,
    new_figure,
    quartiles,
    scores,
)
from softcvi_experiments.tables import markdown_table
from softcvi_experiments.tasks import get_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
# A variant that is one of the methods keeps that method's colour.
_KNOWN = {
    **METHOD_COLOURS,
    **dict.fromkeys(DEFAULTS, METHOD_COLOURS["softcvi-0.75"]),
    "alpha 0": METHOD_COLOURS["softcvi-0"],
    "alpha 1": METHOD_COLOURS["softcvi-1"],
}
_REST = (
    "#999999", "#8c564b", "#9467bd", "#bcbd22", "#17becf", "#555555", "#c49c94",
    "#dbdb8d",
)  # fmt: skip
_ROWS = {
    "log_prob_reference": "b) log probability\nof reference draws",
    "posterior_mean_accuracy": "c) posterior mean\naccuracy",
}
_REACH = 8.0
_PANEL_WIDTH, _LABEL_WIDTH = 2.8, 2.2


@own_settings()
def variants_figure(
    records: Sequence[Record], labels: Mapping[str, str], title: str
) -> "Figure":
    """Coverage, log probability and mean accuracy, a column for each task.

    A variant far below the others is marked with a triangle at the lower edge.

    Args:
        records: Records whose ``method`` is a variant's name.
        labels: What to call each variant.
        title: What varies.

    Example:
        >>> record = {
        ...     "task": "slcp", "method": "alpha 1", "log_prob_reference": -3.0,
        ...     "posterior_mean_accuracy": -1.0, "coverage_nominal": [0.0, 1.0],
        ...     "coverage_actual": [0.0, 1.0],
        ... }
        >>> len(variants_figure([record], {"alpha 1": "1"}, "alpha").axes)
        3
    """
    from matplotlib.patches import Patch

    tasks = list(dict.fromkeys(record["task"] for record in records))
    colours = _colours(labels)
    figure, axes = new_figure(3, len(tasks), _PANEL_WIDTH, 2.1)
    for column, task in zip(axes.T, tasks, strict=True):
        groups = {
            name: [r for r in records if (r["task"], r["method"]) == (task, name)]
            for name in labels
        }
        column[0].set_title(get_task(task).title)
        column[0].axhline(0.0, color="black", linestyle=":", linewidth=1)
        column[0].set_xlabel("nominal")
        for name, group in groups.items():
            nominal = np.array(group[0]["coverage_nominal"])
            actual = np.mean([record["coverage_actual"] for record in group], axis=0)
            column[0].plot(nominal, actual - nominal, color=colours[name])
        for axis, metric in zip(column[1:], _ROWS, strict=True):
            values = [scores(group, metric) for group in groups.values()]
            places = np.arange(len(values))
            shown = [colours[name] for name in groups]
            draw_boxes(axis, values, places, 0.65, shown, reach=_REACH)
            axis.set_xticks([])
    axes[0, 0].set_ylabel("a) coverage:\nactual - nominal")
    for axis, label in zip(axes[1:, 0], _ROWS.values(), strict=True):
        axis.set_ylabel(label)
    handles = [Patch(color=colours[name], label=labels[name]) for name in labels]
    figure.legend(
        handles=handles,
        title=title,
        loc="outside lower center",
        ncols=min(len(handles), int(len(tasks) * _PANEL_WIDTH / _LABEL_WIDTH)),
    )
    return figure


def _colours(names: Mapping[str, str]) -> dict[str, str]:
    others = iter(_REST)
    return {name: _KNOWN.get(name) or next(others) for name in names}


def variants_table(records: Sequence[Record], labels: Mapping[str, str]) -> str:
    """Medians and quartiles by task and variant.

    Args:
        records: Records whose ``method`` is a variant's name.
        labels: What to call each variant.

    Example:
        >>> variants_table([], {}).splitlines()[0][:16]
        '| task | variant'
    """
    header = [
        "task",
        "variant",
        "log probability",
        "mean accuracy",
        "coverage - 0.5",
        "coverage - 0.9",
        "label ESS",
        "runs",
    ]
    lines = []
    for task in dict.fromkeys(record["task"] for record in records):
        for name, label in labels.items():
            group = [r for r in records if (r["task"], r["method"]) == (task, name)]
            lines.append(
                [
                    task,
                    label,
                    _spread(group, "log_prob_reference"),
                    _spread(group, "posterior_mean_accuracy"),
                    f"{coverage_offset(group, 0.5):+.3f}",
                    f"{coverage_offset(group, 0.9):+.3f}",
                    f"{np.mean([record['label_ess'] for record in group]):.2f}",
                    str(len(group)),
                ]
            )
    return markdown_table(header, lines)


def _spread(records: list[Record], name: str) -> str:
    values = scores(records, name)
    lost = len(values) - int(np.isfinite(values).sum())
    if lost == len(values):
        return "not finite"
    low, middle, high = quartiles(values)
    note = f", {lost} not finite" if lost else ""
    return f"{middle:.3f} ({low:.3f}, {high:.3f}){note}"
