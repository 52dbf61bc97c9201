"""Training curves: excess, label ESS and ELBO by step."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from softcvi.report._axes import Axes
from softcvi.report._chart import Chart, number
from softcvi.report._palette import Style
from softcvi.report._view import FitView

_TABLE_ROWS = 12
_MEANING = {
    "excess": "KL between labels and predictions; it falls towards zero",
    "label_ess": "effective number of labels, between 1 and K; 1 is degenerate",
    "elbo": "evidence lower bound; it rises and settles",
}
_NAMES = {"excess": "Excess", "label_ess": "Label ESS", "elbo": "ELBO"}


def training_charts(views: Sequence[FitView]) -> list[Chart]:
    """One chart for each of the three curves, all fits in it.

    Args:
        views: Fits of one posterior.

    Example:
        >>> from softcvi.report import FitView
        >>> view = FitView.example()
        >>> [chart.title for chart in training_charts([view])]
        ['Excess', 'Label ESS', 'ELBO']
    """
    return [_curve(name, views) for name in _NAMES]


def _curve(name: str, views: Sequence[FitView]) -> Chart:
    series = [_transform(name, view.history[name]) for view in views]
    last_step = max(float(view.history["step"][-1]) for view in views)
    axes = Axes(
        (0.0, last_step),
        _range(name, series, views),
        x_label="step",
        y_label=_NAMES[name],
        log_y=name == "excess",
    )
    if name == "elbo":
        for view in views:
            if view.log_evidence is not None and np.isfinite(view.log_evidence):
                axes.rule((0, last_step), (view.log_evidence,) * 2)
    for view, values in zip(views, series, strict=True):
        style = view.style
        raw = dataclasses.replace(style, dash="")
        axes.line(view.history["step"], values, raw, width=0.8, opacity=0.3)
        axes.line(view.history["step"], _smooth(values), style)
    words = [f"{_NAMES[name]} by step: {_MEANING[name]}."]
    words += [_ending(name, view) for view in views]
    return Chart(
        title=_NAMES[name],
        words=" ".join(words),
        drawing=axes.render(),
        width=axes.width,
        height=axes.height,
        legend=_legend(name, views),
        header=("step", *(view.label for view in views)),
        rows=_rows(name, views),
    )


def _legend(name: str, views: Sequence[FitView]) -> tuple[Style, ...]:
    styles = dict.fromkeys(view.style for view in views)
    if name == "elbo" and any(view.log_evidence is not None for view in views):
        styles[Style("log evidence", "#808a94", "2 3", "#a7b1bb")] = None
    return tuple(styles)


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


def _transform(name: str, values: np.ndarray) -> np.ndarray:
    if name != "excess":
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.maximum(values, 1e-8))


def _range(name, series, views) -> tuple[float, float]:
    if name == "label_ess":
        return 1.0, float(max(view.num_particles for view in views))
    finite = np.concatenate([s[np.isfinite(s)] for s in series])
    if not finite.size:
        return 0.0, 1.0
    if name == "elbo":
        # The first steps lie far below what is of interest.
        tails = [s[len(s) // 4 :] for s in series]
        tail = np.concatenate([t[np.isfinite(t)] for t in tails])
        low, high = np.quantile(tail if tail.size else finite, [0.02, 1.0])
        evidence = [v.log_evidence for v in views if v.log_evidence is not None]
        high = max([high, *(e for e in evidence if np.isfinite(e))])
    else:
        low, high = float(finite.min()), float(finite.max())
    pad = 0.06 * (high - low) or 0.5
    return float(low - pad), float(high + pad)


def _ending(name: str, view: FitView) -> str:
    return f"{view.label} ends at {number(view.last(name))}."


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
