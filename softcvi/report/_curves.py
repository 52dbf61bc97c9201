"""Training curves: excess, label ESS and ELBO by step."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from softcvi.report._chart import Chart, draw, number, plain_log, plain_number
from softcvi.report._view import FitView
from softcvi.report.style import SOFT, Style

_TABLE_ROWS = 12
# More than the chart has pixels. Running medians of all points of a long history would
# take memory by the square of their number.
_MOST_POINTS = 4000
_MEANING = {
    "excess": "KL between labels and predictions; it falls towards zero",
    "label_ess": "effective number of labels, between 1 and K; 1 is degenerate",
    "elbo": "evidence lower bound; it rises and settles",
}
_NAMES = {"excess": "Excess", "label_ess": "Label ESS", "elbo": "ELBO"}
_WIDTH, _HEIGHT = 340, 210
_EVIDENCE = Style("log evidence", SOFT, "2 3", "#a7b1bb")


def training_charts(views: Sequence[FitView]) -> list[Chart]:
    """One chart for each of the three curves, all fits in it."""
    # An answer may come without training, such as chains or a guide as it started.
    trained = [_thinned(view) for view in views if len(view.history["step"])]
    return [_curve(name, trained) for name in _NAMES] if trained else []


def _thinned(view: FitView) -> FitView:
    """With as many points of the history as can be drawn, the last one among them."""
    length = len(view.history["step"])
    if length <= _MOST_POINTS:
        return view
    picks = np.linspace(0, length - 1, _MOST_POINTS).astype(int)
    history = {name: values[picks] for name, values in view.history.items()}
    return dataclasses.replace(view, history=history)


def _curve(name: str, views: Sequence[FitView]) -> Chart:
    def paint(axes: Any) -> None:
        for view in views:
            steps, values = view.history["step"], _shown(name, view.history[name])
            axes.plot(steps, values, color=view.style.colour, lw=0.8, alpha=0.3)
            axes.plot(steps, _smooth(values), **view.style.line)
        if name == "excess" and any(np.any(v.history["excess"] > 0) for v in views):
            axes.set_yscale("log")
            plain_log(axes.yaxis)
        else:
            axes.yaxis.set_major_formatter(plain_number)
        axes.set_ylim(*_range(name, views))
        axes.set_xlim(0, max(float(view.history["step"][-1]) for view in views))
        if name == "elbo":
            for evidence in _evidence(views):
                axes.axhline(evidence, **_EVIDENCE.line, lw=1.0)
        axes.set_xlabel("step")
        axes.xaxis.set_major_formatter(plain_number)

    words = [f"{_NAMES[name]} by step: {_MEANING[name]}."]
    words += [f"{view.label} ends at {number(view.last(name))}." for view in views]
    styles = dict.fromkeys(view.style for view in views)
    if name == "elbo" and _evidence(views):
        styles[_EVIDENCE] = None
    return Chart(
        title=_NAMES[name],
        words=" ".join(words),
        drawing=draw(_WIDTH, _HEIGHT, paint),
        width=_WIDTH,
        height=_HEIGHT,
        legend=tuple(styles),
        header=("step", *(view.label for view in views)),
        rows=_rows(name, views),
    )


def _evidence(views: Sequence[FitView]) -> list[float]:
    return [
        view.log_evidence
        for view in views
        if view.log_evidence is not None and np.isfinite(view.log_evidence)
    ]


def _shown(name: str, values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 1e-8) if name == "excess" else values


def _smooth(values: np.ndarray) -> np.ndarray:
    """Running medians, which a single wild step does not move."""
    reach = max(1, len(values) // 40)
    if len(values) < 40:
        return values
    padded = np.pad(values, reach, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    smooth = np.full(len(values), np.nan)
    known = np.isfinite(windows).any(axis=1)
    finite = np.where(np.isfinite(windows[known]), windows[known], np.nan)
    smooth[known] = np.nanmedian(finite, axis=1)
    return smooth


def _range(name: str, views: Sequence[FitView]) -> tuple[float, float]:
    if name == "label_ess":
        return 1.0, max(2.0, float(max(view.num_particles for view in views)))
    curves = [_shown(name, view.history[name]) for view in views]
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    if not finite.size:
        return 0.1, 1.0
    if name == "excess":
        return float(finite.min()) / 1.3, float(finite.max()) * 1.3
    # The first steps, and single draws outside the support, lie far below what is of
    # interest.
    tails = [_smooth(curve)[len(curve) // 4 :] for curve in curves]
    tail = np.concatenate([t[np.isfinite(t)] for t in tails])
    low, high = np.quantile(tail if tail.size else finite, [0.02, 1.0])
    high = max([high, *_evidence(views)])
    pad = 0.06 * (high - low) or 0.5
    return float(low - pad), float(high + pad)


def _rows(name: str, views: Sequence[FitView]) -> tuple[tuple[str, ...], ...]:
    longest = max(views, key=lambda view: view.history["step"][-1])
    steps = longest.history["step"]
    wanted = np.unique(np.linspace(0, len(steps) - 1, _TABLE_ROWS).astype(int))
    return tuple(
        (
            f"{steps[i]:.0f}",
            *(number(_at(view, name, float(steps[i]))) for view in views),
        )
        for i in wanted
    )


def _at(view: FitView, name: str, step: float) -> float | None:
    steps = view.history["step"]
    i = int(np.searchsorted(steps, step))
    return float(view.history[name][i]) if i < len(steps) else None
