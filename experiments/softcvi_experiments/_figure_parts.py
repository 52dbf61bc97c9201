"""What the figures of the experiments are made of."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcvi_experiments._palette import (
    METHOD_COLOURS,
    METHOD_LABELS,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]


def new_figure(rows: int, columns: int, width: float, height: float) -> Any:
    """A figure and its axes, without a window or global state.

    Args:
        rows: Rows of axes.
        columns: Columns of axes.
        width: Width of each, in inches.
        height: Height of each, in inches.

    Example:
        >>> figure, axes = new_figure(2, 3, 2.0, 1.5)
        >>> axes.shape
        (2, 3)
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save_figure(figure: "Figure", folder: str | Path, name: str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF, the same bytes every time.

    Args:
        figure: The figure.
        folder: Where to.
        name: File name without an ending.

    Example:
        >>> import tempfile
        >>> figure, _ = new_figure(1, 1, 2.0, 2.0)
        >>> [path.suffix for path in save_figure(figure, tempfile.mkdtemp(), "empty")]
        ['.png', '.svg', '.pdf']
    """
    import matplotlib as mpl

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    paths = []
    with mpl.rc_context({"svg.hashsalt": "softcvi"}):
        for ending in ("png", "svg", "pdf"):
            path = Path(folder) / f"{name}.{ending}"
            figure.savefig(path, dpi=200, metadata=dates.get(ending))
            paths.append(path)
    return paths


def draw_boxes(
    axis: "Axes",
    values: list[np.ndarray],
    positions: np.ndarray,
    width: float,
    colours: list[str],
) -> None:
    """Box plots without outliers, one colour each.

    Args:
        axis: Where to draw.
        values: Numbers behind each box.
        positions: Where the boxes stand.
        width: Room for each.
        colours: One a box.

    Example:
        >>> figure, axes = new_figure(1, 1, 2.0, 2.0)
        >>> draw_boxes(axes[0, 0], [np.arange(5)], np.zeros(1), 1.0, ["red"])
        >>> len(axes[0, 0].patches)
        1
    """
    drawn = axis.boxplot(
        values,
        positions=positions,
        widths=0.9 * width,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black"},
    )
    for patch, colour in zip(drawn["boxes"], colours, strict=True):
        patch.set_facecolor(colour)


def by_method(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Group records by their method.

    Args:
        records: The records.

    Example:
        >>> list(by_method([{"method": "elbo"}]))
        ['elbo']
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["method"], []).append(record)
    return groups


def finite_numbers(records: list[Record], name: str) -> np.ndarray:
    """One finite number of every record that has it.

    Args:
        records: The records.
        name: Which number.

    Example:
        >>> finite_numbers([{"score": 1.0}, {"score": None}], "score")
        array([1.])
    """
    values = np.array([record[name] for record in records], dtype=float)
    return values[np.isfinite(values)]


def draw_legend(
    figure: "Figure", methods: Iterable[str], extra: Iterable[Any] = ()
) -> None:
    """One legend for the whole figure, below it.

    Args:
        figure: The figure.
        methods: Methods to list.
        extra: Further handles.

    Example:
        >>> figure, _ = new_figure(1, 1, 2.0, 2.0)
        >>> draw_legend(figure, ["elbo"])
        >>> len(figure.legends)
        1
    """
    from matplotlib.patches import Patch

    handles = [Patch(color=METHOD_COLOURS[m], label=METHOD_LABELS[m]) for m in methods]
    handles += extra
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
