"""Pictures of the posterior: marginals, pairs, and one pair for each method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcvi.report._chart import Chart, draw, number, plain_number, shortened
from softcvi.report._columns import Columns, density, is_discrete, shown_range
from softcvi.report._view import FitView, by_interest
from softcvi.report.style import METHOD_STYLES, Style

_MARGINALS = 12
_PAIR_SITES = 4
_PAIR_DOTS = 500
_PICTURE_DOTS = 1500
_QUANTILES = (0.05, 0.5, 0.95)
_SQUARE = 210
_HEADING = 22


def reference_of(views: Sequence[FitView]) -> Columns | None:
    """The reference draws that the fits of one posterior share, if any."""
    return next((v.reference for v in views if v.reference is not None), None)


def marginal_charts(views: Sequence[FitView]) -> list[Chart]:
    """A density for each scalar, with the reference behind it."""
    names = by_interest(views)[:_MARGINALS]
    return [_marginal(name, views) for name in names]


def _samples(
    name: str, views: Sequence[FitView]
) -> list[tuple[Style, str, np.ndarray]]:
    """Style, label and values of every sample of one scalar."""
    found: list[tuple[Style, str, np.ndarray]] = []
    reference = reference_of(views)
    if reference is not None and name in reference:
        style = METHOD_STYLES["reference"]
        found.append((style, style.label, reference[name]))
    return found + [
        (view.style, view.label, view.columns[name])
        for view in views
        if name in view.columns
    ]


def _marginal(name: str, views: Sequence[FitView]) -> Chart:
    samples = _samples(name, views)
    limits = shown_range([values for *_, values in samples])
    discrete = is_discrete(samples[-1][2])

    def paint(axes: Any) -> None:
        for i, (style, _, values) in enumerate(samples):
            if discrete:
                _draw_counts(axes, values, style, i, len(samples))
                continue
            grid, height = density(values, *limits)
            axes.plot(grid, height, **style.line)
            if style is METHOD_STYLES["reference"]:
                axes.fill_between(grid, height, color=style.colour, alpha=0.25, lw=0)
        axes.set_xlim(*limits)
        axes.set_ylim(bottom=0.0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(plain_number)
        axes.locator_params(axis="x", nbins=5)

    rows = [_row(label, values) for _, label, values in samples]
    words = "; ".join(f"{row[0]} {row[1]} ± {row[2]}" for row in rows)
    width, height = 300, 150
    return Chart(
        title=name,
        words=f"Marginal of {name}, mean and standard deviation: {words}.",
        drawing=draw(width, height, paint, margins=(12, 14, 6, 22)),
        width=width,
        height=height,
        legend=tuple(dict.fromkeys(style for style, *_ in samples)),
        header=("sample", "mean", "sd", "5%", "50%", "95%"),
        rows=tuple(rows),
    )


def _draw_counts(
    axes: Any, values: np.ndarray, style: Style, place: int, of: int
) -> None:
    """Shares of whole numbers as bars, side by side for several samples."""
    grid, counts = np.unique(values, return_counts=True)
    width = 0.8 / of
    shift = (place - (of - 1) / 2) * width
    axes.bar(grid + shift, counts / len(values), width, color=style.colour)


def _row(label: str, values: np.ndarray) -> tuple[str, ...]:
    values = np.asarray(values, float)
    numbers = (np.mean(values), np.std(values), *np.quantile(values, _QUANTILES))
    return (label, *(number(float(value)) for value in numbers))


def pairs_chart(view: FitView) -> Chart | None:
    """Scatter plots of pairs of scalars, the reference behind the fit."""
    names = _pair_names(view)
    if len(names) < 2:
        return None
    pairs = [(a, b) for i, b in enumerate(names) for a in names[:i]]
    samples = [(view.style, view.columns)]
    if view.reference is not None and set(names) <= set(view.reference):
        samples.insert(0, (METHOD_STYLES["reference"], view.reference))

    def paint(axes: Any) -> None:
        for axis, (a, b) in zip(_as_list(axes), pairs, strict=False):
            for style, columns in samples:
                # Broad and faint behind, small and clear in front: told apart
                # without colours.
                behind = style is METHOD_STYLES["reference"]
                size, opacity = (3.6, 0.4) if behind else (2.0, 0.75)
                points = columns[a][:_PAIR_DOTS], columns[b][:_PAIR_DOTS]
                _dots(axis, *points, style, size, opacity)
            limits = [shown_range([c[n] for _, c in samples]) for n in (a, b)]
            _finish_square(axis, f"{shortened(b, 14)} by {shortened(a, 14)}", *limits)

    correlations = [_correlation(view.columns, a, b) for a, b in pairs]
    strongest = int(np.argmax(np.abs(correlations)))
    drawing, width, height = _squares(len(pairs), 3, paint)
    return Chart(
        title="Pairs",
        words=f"Scatter plots of {len(pairs)} pairs of parameters; the strongest "
        f"correlation is {number(correlations[strongest])}, of "
        f"{' and '.join(pairs[strongest])}.",
        drawing=drawing,
        width=width,
        height=height,
        legend=tuple(style for style, _ in samples),
        header=("first", "second", "correlation"),
        rows=tuple(
            (a, b, number(r)) for (a, b), r in zip(pairs, correlations, strict=True)
        ),
        wide=True,
        dots=True,
    )


def pair_chart(views: Sequence[FitView], note: str = "") -> Chart | None:
    """The same pair of scalars for the reference and for each method, side by side.

    Args:
        views: Fits of one posterior; the first may name the pair.
        note: Words to add to the heading.

    Example:
        >>> from softcvi.report import FitView
        >>> pair_chart([FitView.example()]).title
        'mu and tau, side by side'
    """
    pair = views[0].pair or tuple(_pair_names(views[0])[:2])
    if len(pair) < 2:
        return None
    a, b = pair
    reference = reference_of(views)
    samples = [
        (view.style, view.label, view.columns)
        for view in views
        if {a, b} <= set(view.columns)
    ]
    if reference is not None and {a, b} <= set(reference):
        style = METHOD_STYLES["reference"]
        samples.insert(0, (style, style.label, reference))
    if not samples:
        return None
    limits = [shown_range([columns[n] for *_, columns in samples]) for n in (a, b)]

    def paint(axes: Any) -> None:
        for axis, (style, label, columns) in zip(_as_list(axes), samples, strict=False):
            take = slice(None, _PICTURE_DOTS)
            _dots(axis, columns[a][take], columns[b][take], style, 2.2, 0.55)
            _finish_square(axis, shortened(label, 30), *limits)

    drawing, width, height = _squares(len(samples), 4, paint)
    rows = tuple(
        (
            label,
            *(number(float(f(columns[n]))) for n in (a, b) for f in (np.mean, np.std)),
        )
        for _, label, columns in samples
    )
    return Chart(
        title=f"{a} and {b}, side by side{note}",
        words=f"Draws of {b} against {a} for "
        + ", ".join(label for _, label, _ in samples)
        + ", on the same axes.",
        drawing=drawing,
        width=width,
        height=height,
        header=("sample", f"{a} mean", f"{a} sd", f"{b} mean", f"{b} sd"),
        rows=rows,
        wide=True,
    )


def _pair_names(view: FitView) -> list[str]:
    """The given pair first, then what is of most interest."""
    names = [n for n in by_interest([view]) if not is_discrete(view.columns[n])]
    first = [n for n in view.pair or () if n in names]
    return [*first, *(n for n in names if n not in first)][:_PAIR_SITES]


def _squares(count: int, most: int, paint: Any) -> tuple[str, int, int]:
    """Axes in a grid, each under its own heading: drawing, width and height."""
    columns = min(count, most)
    rows = -(-count // columns)
    cell = _SQUARE + 40, _SQUARE + _HEADING + 20
    width, height = columns * cell[0], rows * cell[1]
    drawing = draw(
        width,
        height,
        paint,
        grid=(rows, columns),
        margins=(36, 8, _HEADING, 20),
        gaps=(40, _HEADING + 20),
    )
    return drawing, width, height


def _as_list(axes: Any) -> list[Any]:
    return axes if isinstance(axes, list) else [axes]


def _dots(axis: Any, xs: Any, ys: Any, style: Style, size: float, opacity: float):
    """Many points as one path: a dot is a line of no length with round ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = np.column_stack([np.asarray(xs, float), np.asarray(ys, float)])
    points = points[np.isfinite(points).all(axis=1)]
    codes = np.tile([Path.MOVETO, Path.LINETO], len(points))
    patch = PathPatch(
        Path(np.repeat(points, 2, axis=0), codes),
        fill=False,
        edgecolor=style.colour,
        linewidth=size,
        alpha=opacity,
        capstyle="round",
        gid="dots",
    )
    axis.add_patch(patch)


def _finish_square(axis: Any, title: str, x: Any, y: Any) -> None:
    axis.set_title(title, parse_math=False)
    axis.set(xlim=x, ylim=y)
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(plain_number)
    axis.locator_params(nbins=5)


def _correlation(columns: Columns, a: str, b: str) -> float:
    x, y = np.asarray(columns[a], float), np.asarray(columns[b], float)
    if not (np.std(x) > 0 and np.std(y) > 0):
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])
