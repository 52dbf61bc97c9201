"""The one palette and figure style, and what figures are made of."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcvi.report import own_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]

METHOD_COLOURS = {
    "softcvi-0.75": "#0072b2",
    "softcvi-1": "#56b4e9",
    "softcvi-0": "#cc79a7",
    "snis-fkl": "#e69f00",
    "snis-fkl-low-variance": "#f0e442",
    "elbo": "#d55e00",
    "elbo-stl": "#882255",
}
METHOD_LABELS = {
    "softcvi-0.75": "SoftCVI, alpha 0.75",
    "softcvi-1": "SoftCVI, alpha 1",
    "softcvi-0": "SoftCVI, alpha 0",
    "snis-fkl": "SNIS-fKL",
    "snis-fkl-low-variance": "SNIS-fKL, low variance",
    "elbo": "ELBO",
    "elbo-stl": "ELBO, STL",
}
REFERENCE_COLOUR = "#009e73"


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


@own_settings()
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
    *,
    reach: float = math.inf,
) -> None:
    """Box plots without outliers, one colour each.

    Minus infinity is a value like any other: a box whose lower quartile is a failure
    reaches down to the axis, and a triangle marks a median that is one.

    Args:
        axis: Where to draw.
        values: Numbers behind each box.
        positions: Where the boxes stand.
        width: Room for each.
        colours: One per box.
        reach: Where to cut off groups far below the best one, in typical widths.

    Example:
        >>> figure, axes = new_figure(1, 1, 2.0, 2.0)
        >>> draw_boxes(axes[0, 0], [np.arange(5)], np.zeros(1), 1.0, ["red"])
        >>> len(axes[0, 0].patches)
        1
    """
    ranked = [np.asarray(group, float) for group in values]
    finite = np.concatenate([group[np.isfinite(group)] for group in ranked])
    if not finite.size:
        return
    # Below everything that is shown: where failures are cut off.
    floor = finite.min() - 0.1 * max(np.ptp(finite), 1e-9)
    if math.isfinite(reach):
        low, middle, high = np.maximum([quartiles(g) for g in ranked], floor).T
        best = middle.max()
        unit = max(np.median(high - low), 0.5 * np.median(best - middle), 1e-9)
        floor = max(floor, best - reach * unit)
    boxes = [_box(group, floor) for group in ranked]
    drawn = axis.bxp(
        boxes,
        positions=positions,
        widths=0.9 * width,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black"},
    )
    for patch, colour in zip(drawn["boxes"], colours, strict=True):
        patch.set_facecolor(colour)
    if any(box["whislo"] <= floor for box in boxes):
        axis.set_ylim(bottom=floor)
    for box, place, colour in zip(boxes, positions, colours, strict=True):
        if box["med"] <= floor:
            axis.plot(
                place, 0.04, "v", color=colour, transform=axis.get_xaxis_transform(),
                markeredgecolor="black", clip_on=False,
            )  # fmt: skip


def _box(values: np.ndarray, floor: float) -> dict[str, float]:
    """Quartiles and whiskers, failures at the floor."""
    low, middle, high = quartiles(values)
    inside = values[(values >= low - 1.5 * (high - low)) | ~np.isfinite(low)]
    inside = inside[inside <= high + 1.5 * (high - low)] if np.isfinite(low) else inside
    ends = {"whislo": inside.min(), "whishi": inside.max()}
    numbers = {"med": middle, "q1": low, "q3": high, **ends}
    return {name: float(max(value, floor)) for name, value in numbers.items()}


def quartiles(values: np.ndarray) -> tuple[float, float, float]:
    """Quartiles of numbers that may be minus infinity.

    Args:
        values: The numbers.

    Example:
        >>> quartiles(np.array([-np.inf, 1.0, 2.0, 3.0, 4.0]))
        (1.0, 2.0, 3.0)
    """
    # One cannot interpolate from minus infinity.
    method = "linear" if np.isfinite(values).all() else "nearest"
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method=method)  # type: ignore[call-overload]
    return float(low), float(middle), float(high)


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


def scores(records: list[Record], name: str) -> np.ndarray:
    """One number of every record; a fit that failed has the worst there is.

    Args:
        records: The records.
        name: Which number.

    Example:
        >>> scores([{"score": 1.0}, {"score": None}], "score")
        array([  1., -inf])
    """
    values = np.array([record[name] for record in records], dtype=float)
    return np.where(np.isnan(values), -np.inf, values)


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
