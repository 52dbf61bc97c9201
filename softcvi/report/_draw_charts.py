"""Pictures of the posterior: marginals, pairs, and one pair for each method."""

from collections.abc import Sequence
from html import escape

import numpy as np

from softcvi.report._axes import Axes
from softcvi.report._chart import Chart, number, shortened, side_by_side
from softcvi.report._columns import Columns, density, is_discrete, shown_range
from softcvi.report._interest import by_interest
from softcvi.report._palette import METHOD_STYLES, Style
from softcvi.report._view import FitView

_MARGINALS = 12
_PAIR_SITES = 4
_PAIR_DOTS = 500
_PICTURE_DOTS = 1500
_QUANTILES = (0.05, 0.5, 0.95)


def reference_of(views: Sequence[FitView]) -> Columns | None:
    """The reference draws that the fits of one posterior share, if any.

    Args:
        views: Fits of one posterior.

    Example:
        >>> from softcvi.report import FitView
        >>> reference_of([FitView.example()]) is None
        True
    """
    return next((v.reference for v in views if v.reference is not None), None)


def marginal_charts(views: Sequence[FitView]) -> list[Chart]:
    """A density for each scalar, with the reference behind it.

    Args:
        views: Fits of one posterior.

    Example:
        >>> from softcvi.report import FitView
        >>> [chart.title for chart in marginal_charts([FitView.example()])]
        ['mu', 'tau']
    """
    names = by_interest(views)[:_MARGINALS]
    return [_marginal(name, views) for name in names]


def _samples(
    name: str, views: Sequence[FitView]
) -> list[tuple[Style, str, np.ndarray, np.ndarray | None]]:
    """Style, label, values and weights of every sample of one scalar."""
    found: list[tuple[Style, str, np.ndarray, np.ndarray | None]] = []
    reference = reference_of(views)
    if reference is not None and name in reference:
        style = METHOD_STYLES["reference"]
        found.append((style, style.label, reference[name], None))
    for view in views:
        if name in view.columns:
            values = view.columns[name]
            found.append((view.style, view.label, values, None))
    return found


def _marginal(name: str, views: Sequence[FitView]) -> Chart:
    samples = _samples(name, views)
    low, high = shown_range([values for *_, values, _ in samples])
    heights = [_height(values, weights, low, high) for *_, values, weights in samples]
    top = max(float(np.max(h)) for _, h in heights)
    axes = Axes(
        (low, high),
        (0.0, 1.08 * top or 1.0),
        width=300,
        height=150,
        y_ticks=False,
        margins=(10, 10, 6, 22),
    )
    discrete = is_discrete(samples[-1][2])
    for i, ((style, *_), (grid, height)) in enumerate(
        zip(samples, heights, strict=True)
    ):
        if discrete:
            axes.sticks(grid, height, style, shift=5.0 * (i - (len(samples) - 1) / 2))
        elif style is METHOD_STYLES["reference"]:
            axes.area(grid, height, style)
        else:
            axes.line(grid, height, style)
    rows = [_row(label, values, weights) for _, label, values, weights in samples]
    words = "; ".join(f"{row[0]} {row[1]} ± {row[2]}" for row in rows)
    return Chart(
        title=name,
        words=f"Marginal of {name}, mean and standard deviation: {words}.",
        drawing=axes.render(),
        width=axes.width,
        height=axes.height,
        legend=tuple(dict.fromkeys(style for style, *_ in samples)),
        header=("sample", "mean", "sd", "5%", "50%", "95%"),
        rows=tuple(rows),
    )


def _height(values, weights, low, high) -> tuple[np.ndarray, np.ndarray]:
    if not is_discrete(values):
        return density(values, low, high, weights)
    weights = np.full(len(values), 1 / len(values)) if weights is None else weights
    grid, inverse = np.unique(values, return_inverse=True)
    return grid, np.bincount(inverse, weights=weights)


def _row(label: str, values: np.ndarray, weights: np.ndarray | None):
    values = np.asarray(values, float)
    weights = np.full(len(values), 1 / len(values)) if weights is None else weights
    mean = float(weights @ values)
    sd = float(np.sqrt(max(float(weights @ (values - mean) ** 2), 0.0)))
    order = np.argsort(values)
    picks = np.searchsorted(np.cumsum(weights[order]), _QUANTILES)
    quantiles = values[order][np.minimum(picks, len(values) - 1)]
    return (label, number(mean), number(sd), *(number(float(q)) for q in quantiles))


def pairs_chart(view: FitView) -> Chart | None:
    """Scatter plots of pairs of scalars, the reference behind the fit.

    Args:
        view: One fit.

    Example:
        >>> from softcvi.report import FitView
        >>> pairs_chart(FitView.example()).title
        'Pairs'
    """
    names = _pair_names(view)
    if len(names) < 2:
        return None
    pairs = [(a, b) for i, b in enumerate(names) for a in names[:i]]
    panels = []
    for a, b in pairs:
        samples = [(view.style, view.columns)]
        if view.reference is not None and {a, b} <= set(view.reference):
            samples.insert(0, (METHOD_STYLES["reference"], view.reference))
        panels.append((f"{escape(b)} by {escape(a)}", _scatter(samples, a, b)))
    drawing, width, height = side_by_side(panels, columns=min(3, len(panels)))
    correlations = tuple(
        (a, b, number(_correlation(view.columns, a, b))) for a, b in pairs
    )
    strongest = max(correlations, key=lambda row: abs(_as_float(row[2])))
    styles = [view.style]
    if view.reference is not None:
        styles.insert(0, METHOD_STYLES["reference"])
    return Chart(
        title="Pairs",
        words=f"Scatter plots of {len(pairs)} pairs of parameters; the strongest "
        f"correlation is {strongest[2]}, of {strongest[0]} and {strongest[1]}.",
        drawing=drawing,
        width=width,
        height=height,
        legend=tuple(styles),
        header=("first", "second", "correlation"),
        rows=correlations,
        wide=True,
        dots=True,
    )


def picture_chart(views: Sequence[FitView]) -> Chart | None:
    """The same pair of scalars for the reference and for each method, side by side.

    Args:
        views: Fits of one posterior.

    Example:
        >>> from softcvi.report import FitView
        >>> picture_chart([FitView.example()]).title
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
    limits = [shown_range([columns[n] for *_, columns in samples]) for n in (a, b)]
    panels = []
    for style, label, columns in samples:
        axes = _square(*limits)
        take = slice(None, _PICTURE_DOTS)
        axes.dots(columns[a][take], columns[b][take], style)
        panels.append((escape(shortened(label, 30)), axes))
    drawing, width, height = side_by_side(panels, columns=4)
    rows = tuple(
        (
            label,
            *(number(float(f(columns[n]))) for n in (a, b) for f in (np.mean, np.std)),
        )
        for _, label, columns in samples
    )
    return Chart(
        title=f"{a} and {b}, side by side",
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


def _scatter(samples: list[tuple[Style, Columns]], a: str, b: str) -> Axes:
    axes = _square(*(shown_range([c[n] for _, c in samples]) for n in (a, b)))
    for style, columns in samples:
        # Broad and faint behind, small and clear in front: told apart without colours.
        behind = style is METHOD_STYLES["reference"]
        size, opacity = (3.6, 0.4) if behind else (2.0, 0.75)
        xs, ys = columns[a][:_PAIR_DOTS], columns[b][:_PAIR_DOTS]
        axes.dots(xs, ys, style, size, opacity)
    return axes


def _square(x, y) -> Axes:
    return Axes(x, y, width=250, height=225, margins=(38, 10, 2, 20))


def _correlation(columns: Columns, a: str, b: str) -> float:
    x, y = np.asarray(columns[a], float), np.asarray(columns[b], float)
    if not (np.std(x) > 0 and np.std(y) > 0):
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _as_float(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "0"))
