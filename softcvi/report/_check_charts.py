"""Charts that say whether to believe the rest: weights, k-hat and coverage."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcvi.report._chart import (
    Chart,
    draw,
    number,
    plain_log,
    plain_number,
    shortened,
)
from softcvi.report._view import FitView
from softcvi.report.style import CARD, FAIR, GOOD, INK, POOR, SOFT

_POINTS = 120
_WIDTH, _HEIGHT = 340, 210
_KHAT_TOP = 1.2
_ZONES = ((0.0, 0.5, GOOD), (0.5, 0.7, FAIR), (0.7, _KHAT_TOP, POOR))
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def check_charts(views: Sequence[FitView]) -> list[Chart]:
    """k-hat, importance weights, and coverage where there is a reference."""
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
    # Six units per letter hold all but the widest words of a system font.
    left = max(96, 14 + 6 * max(map(len, labels)))
    height = 40 + 30 * len(views)

    def paint(axes: Any) -> None:
        for low, high, colour in _ZONES:
            axes.axvspan(low, high, color=colour, lw=0, zorder=0)
        for i, view in enumerate(views):
            khat = min(max(view.khat or 0.0, 0.0), _KHAT_TOP)
            axes.plot(khat, i, "o", ms=10, mfc=view.style.colour, mec=CARD, mew=1.5)
        axes.set_yticks(range(len(views)), labels, color=INK, parse_math=False)
        axes.set_ylim(len(views) - 0.5, -0.5)
        axes.set_xticks((0.0, 0.5, 0.7, 1.0))
        axes.set_xlim(0, _KHAT_TOP)
        axes.xaxis.set_major_formatter(plain_number)
        axes.grid(False)
        axes.spines[:].set_visible(False)

    values = "; ".join(f"{view.label} {number(view.khat)}" for view in views)
    return Chart(
        title="k-hat",
        words=f"Pareto k-hat of the importance weights: {values}. Below 0.5 is good, "
        "up to 0.7 usable, above it the guide misses part of the posterior.",
        drawing=draw(_WIDTH, height, paint, margins=(left, 14, 8, 24)),
        width=_WIDTH,
        height=height,
        header=("fit", "k-hat", "effective share"),
        rows=tuple((v.label, number(v.khat), number(v.ess_share)) for v in views),
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

    def paint(axes: Any) -> None:
        axes.axhline(1.0, color=SOFT, lw=1, ls=(0, (2, 3)))
        for view, (rank, weights) in zip(views, curves, strict=True):
            axes.plot(rank, weights, **view.style.line)
        low = min(float(weights[int(0.9 * len(weights))]) for _, weights in curves)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1, max(2, *(int(rank[-1]) for rank, _ in curves)))
        axes.set_ylim(max(low, 1e-3) / 1.3, None)
        axes.set_xlabel("rank of the draw")
        axes.set_ylabel("weight (1 = equal)")
        plain_log(axes.xaxis, (1,))
        plain_log(axes.yaxis)

    described = "; ".join(
        f"{view.label}: the heaviest draw counts {number(float(weights[0]))} times"
        + ("" if view.ess_share is None else f", {view.ess_share:.0%} carry weight")
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
        words=f"Weights of the guide's draws from the heaviest down. {described}. "
        "A flat line at 1 means that the guide equals the posterior.",
        drawing=draw(_WIDTH, _HEIGHT, paint),
        width=_WIDTH,
        height=_HEIGHT,
        legend=tuple(dict.fromkeys(v.style for v in views)),
        header=("rank", *(view.label for view in views)),
        rows=tuple(rows),
    )


def _coverage_chart(views: Sequence[FitView]) -> Chart:
    curves = [(view, *view.coverage) for view in views if view.coverage is not None]

    def paint(axes: Any) -> None:
        axes.plot((0, 1), (0, 1), color=SOFT, lw=1, ls=(0, (2, 3)))
        for view, nominal, actual in curves:
            axes.plot(nominal, actual, **view.style.line)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel("nominal coverage")
        axes.set_ylabel("actual coverage")
        axes.xaxis.set_major_formatter(plain_number)
        axes.yaxis.set_major_formatter(plain_number)

    words = []
    for view, nominal, actual in curves:
        gap = float(np.mean(np.asarray(actual) - np.asarray(nominal)))
        kind = "cautious" if gap > 0.02 else "overconfident" if gap < -0.02 else "right"
        words.append(f"{view.label} is {kind} (mean gap {number(gap)})")
    rows = [
        (
            f"{level:g}",
            *(number(float(np.interp(level, x, y))) for _, x, y in curves),
        )
        for level in _LEVELS
    ]
    return Chart(
        title="Coverage",
        words="Share of reference draws inside the guide's highest-density regions: "
        + "; ".join(words)
        + ". Below the diagonal is overconfident.",
        drawing=draw(_WIDTH, _HEIGHT, paint),
        width=_WIDTH,
        height=_HEIGHT,
        legend=tuple(dict.fromkeys(v.style for v in views)),
        header=("nominal", *(view.label for view in views)),
        rows=tuple(rows),
    )
