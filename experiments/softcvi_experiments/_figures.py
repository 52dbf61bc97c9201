"""Figures of the experiments, in the paper's layout."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments.figures import (
    METHOD_COLOURS,
    METHOD_LABELS,
    REFERENCE_COLOUR,
    Record,
    by_method,
    draw_boxes,
    draw_legend,
    new_figure,
    quartiles,
    save_figure,
    scores,
)
from softcvi_experiments.tasks import get_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "marginals_figure",
    "metrics_figure",
    "particles_figure",
    "save_figure",
    "slcp_figure",
]

Draws = dict[str, np.ndarray]
_BOXED = ("log_prob_reference", "posterior_mean_accuracy")
_PUBLISHED: dict[str, Any] = {
    "marker": "D", "color": "white", "markeredgecolor": "black", "markersize": 4,
    "linestyle": "none", "label": "published", "zorder": 5,
}  # fmt: skip
_LIMIT: dict[str, Any] = {
    "color": "grey",
    "linestyle": "--",
    "label": "maximum likelihood fit",
}


@own_settings()
def metrics_figure(
    records: Sequence[Record],
    published: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    limits: Mapping[str, float] | None = None,
) -> "Figure":
    """Coverage, log probability and mean accuracy, a column for each task.

    Args:
        records: Records of runs with the same settings.
        published: The paper's numbers by task and method; medians become diamonds.
        limits: Scores of maximum likelihood fits by task; they become dashed lines.

    Example:
        >>> record = {
        ...     "task": "slcp", "method": "elbo", "run": 0, "log_prob_reference": -3.0,
        ...     "posterior_mean_accuracy": -1.0, "coverage_nominal": [0.0, 1.0],
        ...     "coverage_actual": [0.0, 1.0],
        ... }
        >>> len(metrics_figure([record]).axes)
        3
    """
    from matplotlib.lines import Line2D

    published, limits = published or {}, limits or {}
    tasks = list(dict.fromkeys(record["task"] for record in records))
    figure, axes = new_figure(3, len(tasks), 2.6, 2.1)
    for column, task in zip(axes.T, tasks, strict=True):
        groups = by_method(record for record in records if record["task"] == task)
        column[0].set_title(get_task(task).title)
        _draw_coverage(column[0], groups)
        for axis, name in zip(column[1:], _BOXED, strict=True):
            _draw_metric(axis, groups, name)
            for i, method in enumerate(groups):
                theirs = published.get((task, method), {}).get(name)
                if theirs is not None:
                    axis.plot(i, theirs[1], **_PUBLISHED)
        if task in limits:
            column[1].axhline(limits[task], **_LIMIT)
    axes[0, 0].set_ylabel("a) coverage:\nactual - nominal")
    axes[1, 0].set_ylabel("b) log probability\nof reference draws")
    axes[2, 0].set_ylabel("c) posterior mean\naccuracy")
    extra = [Line2D([], [], **_PUBLISHED)] if published else []
    extra += [Line2D([], [], **_LIMIT)] if limits else []
    draw_legend(figure, by_method(records), extra)
    return figure


@own_settings()
def particles_figure(records: Sequence[Record]) -> "Figure":
    """Log probability and run time against the number of particles.

    Lines leave the lower edge where a method fails by far more than the others differ.

    Args:
        records: Records of runs that differ in their number of particles.

    Example:
        >>> record = {
        ...     "task": "slcp", "method": "elbo", "run": 0, "num_particles": 2,
        ...     "log_prob_reference": -3.0, "seconds_run": 2.0,
        ... }
        >>> len(particles_figure([record]).axes)
        2
    """
    tasks = list(dict.fromkeys(record["task"] for record in records))
    figure, axes = new_figure(2, len(tasks), 2.6, 2.1)
    for column, task in zip(axes.T, tasks, strict=True):
        groups = by_method(record for record in records if record["task"] == task)
        column[0].set_title(get_task(task).title)
        everything = []
        for method, group in groups.items():
            particles = sorted({record["num_particles"] for record in group})
            medians, seconds = [], []
            for k in particles:
                here = [r for r in group if r["num_particles"] == k]
                medians.append(quartiles(scores(here, "log_prob_reference"))[1])
                # Compilation is left out: methods may share a program.
                seconds.append(here[0]["seconds_run"])
            colour = METHOD_COLOURS[method]
            column[0].plot(particles, medians, "o-", color=colour, markersize=3)
            column[1].plot(particles, seconds, "o-", color=colour, markersize=3)
            everything += [m for m in medians if np.isfinite(m)]
        if everything:
            column[0].set_ylim(*_shown_range(everything))
        for axis in column:
            axis.set_xscale("log", base=2)
        column[1].set_yscale("log")
        column[1].set_xlabel("K")
    axes[0, 0].set_ylabel("log probability\nof reference draws")
    axes[1, 0].set_ylabel("seconds for all runs,\nwithout compilation")
    draw_legend(figure, by_method(records))
    return figure


def _shown_range(scores: Sequence[float]) -> tuple[float | None, float | None]:
    """Where to cut an axis so that failures do not hide all differences."""
    best = max(scores)
    below = best - np.asarray(scores)
    reach = 6 * float(np.median(below))
    if not 0 < reach < below.max():
        return None, None
    return best - reach, best + 0.1 * reach


@own_settings()
def slcp_figure(draws: dict[str, list[Draws]], references: list[Draws]) -> "Figure":
    """The four modes of SLCP: a row for each run, a column for each method.

    Args:
        draws: Guide draws by method, one entry per run.
        references: Reference draws, one entry per run.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> one = {"theta": rng.normal(size=(10, 5))}
        >>> len(slcp_figure({"elbo": [one], "softcvi-0": [one]}, [one]).axes)
        2
    """
    figure, axes = new_figure(len(references), len(draws), 2.0, 2.0)
    for column, (method, runs) in zip(axes.T, draws.items(), strict=True):
        column[0].set_title(METHOD_LABELS[method])
        for axis, ours, reference in zip(column, runs, references, strict=True):
            _scatter(axis, reference, REFERENCE_COLOUR, "reference")
            _scatter(axis, ours, METHOD_COLOURS[method], "guide")
            axis.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
        column[-1].set_xlabel("$\\theta_3$")
    for axis in axes[:, 0]:
        axis.set_ylabel("$\\theta_4$")
    return figure


@own_settings()
def marginals_figure(
    draws: dict[str, dict[str, Draws]], references: dict[str, Draws], most: int = 10
) -> "Figure":
    """Box plots of every parameter of one run, a row for each task.

    Args:
        draws: Guide draws by task and method.
        references: Reference draws by task.
        most: Parameters to show of a task at most.

    Example:
        >>> one = {"mu": np.zeros(5), "theta": np.ones((5, 8))}
        >>> figure = marginals_figure({"garch": {"elbo": one}}, {"garch": one})
        >>> len(figure.axes)
        1
    """
    from matplotlib.patches import Patch

    figure, axes = new_figure(len(draws), 1, 9.0, 2.4)
    for axis, (task, fitted) in zip(axes[:, 0], draws.items(), strict=True):
        everything = {"reference": references[task], **fitted}
        width = 0.8 / len(everything)
        names = next(iter(fitted.values()))  # references may list them in another order
        for i, (method, values) in enumerate(everything.items()):
            columns = _columns({name: values[name] for name in names}, most)
            colour = METHOD_COLOURS.get(method, REFERENCE_COLOUR)
            positions = (
                np.arange(len(columns)) + (i - len(everything) / 2 + 0.5) * width
            )
            draw_boxes(
                axis, list(columns.values()), positions, width, [colour] * len(columns)
            )
        axis.set_xticks(np.arange(len(columns)), list(columns))
        axis.set_title(get_task(task).title)
    reference = Patch(color=REFERENCE_COLOUR, label="reference")
    draw_legend(figure, next(iter(draws.values())), [reference])
    return figure


def _draw_coverage(axis: "Axes", groups: dict[str, list[Record]]) -> None:
    axis.axhline(0.0, color="black", linestyle=":", linewidth=1)
    for method, group in groups.items():
        nominal = np.array(group[0]["coverage_nominal"])
        actual = np.mean([record["coverage_actual"] for record in group], axis=0)
        axis.plot(nominal, actual - nominal, color=METHOD_COLOURS[method])
    axis.set_xlabel("nominal")


def _draw_metric(axis: "Axes", groups: dict[str, list[Record]], name: str) -> None:
    values = [scores(group, name) for group in groups.values()]
    colours = [METHOD_COLOURS[method] for method in groups]
    draw_boxes(axis, values, np.arange(len(values)), 0.6, colours)
    axis.set_xticks([])


def _scatter(axis: "Axes", draws: Draws, colour: str, label: str) -> None:
    theta = draws["theta"][:2000]
    axis.scatter(
        theta[:, 2], theta[:, 3], s=1, color=colour, alpha=0.4, label=label,
        rasterized=True, linewidths=0,
    )  # fmt: skip


def _columns(draws: Draws, most: int) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    for name, values in draws.items():
        if values.ndim == 1:
            columns[name] = values
        else:
            flat = values.reshape(len(values), -1)
            columns |= {f"{name}[{i + 1}]": flat[:, i] for i in range(flat.shape[1])}
    return dict(list(columns.items())[:most])
