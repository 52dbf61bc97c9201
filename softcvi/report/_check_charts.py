"""Charts that say whether to believe the rest: weights, k-hat and coverage."""

from collections.abc import Sequence
from html import escape

import numpy as np

from softcvi.report._axes import Axes
from softcvi.report._chart import Chart, number, shortened
from softcvi.report._view import FitView

_POINTS = 120
_ZONES = ((0.0, 0.5, "good"), (0.5, 0.7, "fair"), (0.7, 1.2, "poor"))


def check_charts(views: Sequence[FitView]) -> list[Chart]:
    """k-hat, importance weights, and coverage where there is a reference.

    Args:
        views: Fits of one posterior.

    Example:
        >>> from softcvi.report import FitView
        >>> [chart.title for chart in check_charts([FitView.example()])]
        ['k-hat', 'Importance weights']
    """
    charts = []
    weighted = [v for v in views if v.log_weights is not None and v.khat is not None]
    if weighted:
        charts += [_khat_chart(weighted), _weights_chart(weighted)]
    covered = [view for view in views if view.coverage is not None]
    if covered:
        charts.append(_coverage_chart(covered))
    return charts


def _khat_chart(views: Sequence[FitView]) -> Chart:
    labels = [shortened(view.style.label, 22) for view in views]
    # Six units a letter hold all but the widest words of a system font.
    left = max(96, 14 + 6 * max(map(len, labels)))
    width, row = 340, 30
    height = 40 + row * len(views)
    bottom = height - 24

    def x(value: float) -> float:
        return left + min(max(value, 0.0), 1.2) / 1.2 * (width - left - 14)

    parts = [
        f'<rect x="{x(a):.0f}" y="8" width="{x(b) - x(a):.0f}" height="{bottom - 8}" '
        f'class="zone-{name}"/>'
        for a, b, name in _ZONES
    ]
    for tick in (0.0, 0.5, 0.7, 1.0):
        parts.append(
            f'<text x="{x(tick):.0f}" y="{bottom + 15}" text-anchor="middle">'
            f"{tick:g}</text>"
        )
    for i, (view, label) in enumerate(zip(views, labels, strict=True)):
        y = 8 + row * (i + 0.5)
        parts.append(
            f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end" class="label">'
            f"{escape(label)}</text>"
            f'<circle cx="{x(view.khat or 0.0):.1f}" cy="{y:.0f}" r="6" '
            f'{view.style.paint("fill")} class="ring"/>'
        )
    rows = tuple((v.label, number(v.khat), number(v.ess_share)) for v in views)
    values = "; ".join(f"{view.label} {number(view.khat)}" for view in views)
    return Chart(
        title="k-hat",
        words=f"Pareto k-hat of the importance weights: {values}. Below 0.5 is good, "
        "up to 0.7 usable, above it the guide misses part of the posterior.",
        drawing="".join(parts),
        width=width,
        height=height,
        header=("fit", "k-hat", "effective share"),
        rows=rows,
    )


def _weights_chart(views: Sequence[FitView]) -> Chart:
    curves = []
    for view in views:
        shares = np.sort(np.exp(np.asarray(view.log_weights)))[::-1]
        weights = shares * len(shares)
        picks = np.unique(
            np.geomspace(1, len(weights), _POINTS).round().astype(int) - 1
        )
        curves.append((picks + 1, np.maximum(weights[picks], 1e-6)))
    top = max(float(np.log10(w[0])) for _, w in curves)
    low = min(float(np.log10(w[int(0.9 * len(w))])) for _, w in curves)
    axes = Axes(
        (0.0, max(float(np.log10(rank[-1])) for rank, _ in curves)),
        (max(low, -3.0) - 0.1, top + 0.15),
        x_label="rank of the draw",
        y_label="weight (1 = equal)",
        log_x=True,
        log_y=True,
    )
    axes.rule(axes.x, (0.0, 0.0))
    for view, (rank, weights) in zip(views, curves, strict=True):
        axes.line(np.log10(rank), np.log10(weights), view.style)
    described = "; ".join(
        f"{view.label}: the heaviest draw counts {number(float(weights[0]))} times, "
        f"{view.ess_share:.0%} carry weight"
        for view, (_, weights) in zip(views, curves, strict=True)
    )
    rows = []
    for wanted in (1, 10, 100, 1000):
        row = [str(wanted)]
        for ranks, weights in curves:
            nearest = int(np.argmin(np.abs(ranks - wanted)))
            known = wanted <= ranks[-1]
            row.append(number(float(weights[nearest]) if known else None))
        rows.append(tuple(row))
    return Chart(
        title="Importance weights",
        words=f"Weights of the draws from the heaviest down. {described}. "
        "A flat line at 1 means that the guide equals the posterior.",
        drawing=axes.render(),
        width=axes.width,
        height=axes.height,
        legend=tuple(dict.fromkeys(v.style for v in views)),
        header=("rank", *(view.label for view in views)),
        rows=tuple(rows),
    )


def _coverage_chart(views: Sequence[FitView]) -> Chart:
    axes = Axes(
        (0.0, 1.0),
        (0.0, 1.0),
        x_label="nominal coverage",
        y_label="actual coverage",
    )
    axes.rule((0, 1), (0, 1))
    words = []
    for view in views:
        nominal, actual = view.coverage or ((), ())
        axes.line(nominal, actual, view.style)
        gap = float(np.mean(np.asarray(actual) - np.asarray(nominal)))
        kind = "cautious" if gap > 0.02 else "overconfident" if gap < -0.02 else "right"
        words.append(f"{view.label} is {kind} (mean gap {number(gap)})")
    rows = []
    for level in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95):
        values = [np.interp(level, *view.coverage) for view in views if view.coverage]
        rows.append((f"{level:g}", *(number(float(value)) for value in values)))
    return Chart(
        title="Coverage",
        words="Share of reference draws inside the guide's highest-density regions: "
        + "; ".join(words)
        + ". Below the diagonal is overconfident.",
        drawing=axes.render(),
        width=axes.width,
        height=axes.height,
        legend=tuple(dict.fromkeys(v.style for v in views)),
        header=("nominal", *(view.label for view in views)),
        rows=tuple(rows),
    )
