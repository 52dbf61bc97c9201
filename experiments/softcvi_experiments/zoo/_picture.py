"""One picture of the zoo's bench: errors, sd ratios and times by model."""

from pathlib import Path

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments.zoo._registry import get, names

_STYLE = {
    "fit": ("softcvi fit", "#1b6ca8", "o"),
    "fit_until": ("softcvi fit_until", "#0b2545", "D"),
    "fit_starts": ("softcvi fit(starts=8)", "#5fa8d3", "p"),
    "auto_normal": ("AutoNormal", "#e07a5f", "v"),
    "auto_mvn": ("AutoMultivariateNormal", "#b56576", "^"),
    "pathfinder": ("pathfinder", "#81b29a", "s"),
    "nuts": ("NUTS", "#6c757d", "x"),
    "nuts_parallel": ("NUTS, parallel", "#343a40", "+"),
}
_FLOOR, _CEILING = 1e-2, 1e2


@own_settings()
def draw_picture(records: list[dict], path: Path | str) -> None:
    """Draw mean error, sd ratio and seconds by model (median over seeds).

    Args:
        records: Records of a bench.
        path: Where to save; the suffix chooses the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ok = [r for r in records if r["status"] == "ok"]
    present = {r["model"] for r in ok}
    rows = [
        n for half in ("development", "report") for n in names(half) if n in present
    ]
    methods = [m for m in _STYLE if any(r["method"] == m for r in ok)]
    figure = Figure(figsize=(13, 2.2 + 0.36 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3, sharey=True)
    for index, method in enumerate(methods):
        label, colour, marker = _STYLE[method]
        offset = (index - (len(methods) - 1) / 2) * 0.8 / max(len(methods), 1)
        axes[0].plot([], [], marker, color=colour, label=label)
        for row, model in enumerate(rows):
            cases = [r for r in ok if r["model"] == model and r["method"] == method]
            if not cases:
                continue
            y = row + offset
            error, low, high = (
                float(np.clip(np.median([c[k] for c in cases]), 1e-3, 1e6))
                for k in ("mean_error", "sd_ratio_min", "sd_ratio_max")
            )
            fresh = [c["seconds"] for c in cases if not c.get("compiled_before")]
            axes[0].plot(
                np.clip(error, _FLOOR, _CEILING),
                y,
                marker,
                color=colour,
                markersize=5,
            )
            bounds = np.clip([low, high], 0.1, 10.0)
            axes[1].plot(bounds, [y, y], "-", color=colour, linewidth=2.5)
            axes[2].plot(fresh, [y] * len(fresh), marker, color=colour, markersize=5)
    axes[0].axvspan(_FLOOR / 1.5, 0.15, color="#2a9d8f", alpha=0.12, linewidth=0)
    axes[1].axvspan(0.85, 1.15, color="#2a9d8f", alpha=0.12, linewidth=0)
    axes[0].set(
        xscale="log",
        xlim=(_FLOOR / 1.5, _CEILING * 1.5),
        xlabel="largest error of a mean, posterior sds\n(clipped to 0.01 and 100)",
        title="means (green: at most 0.15)",
    )
    axes[1].set(
        xscale="log",
        xlim=(0.09, 11.0),
        xlabel="range of sd ratio (clipped to 0.1 and 10)",
        title="spread (green: 0.85 to 1.15)",
    )
    axes[2].set(xscale="log", xlabel="seconds, with compilation", title="wall time")
    labels = [f"{n}{' (report)' if get(n).split == 'report' else ''}" for n in rows]
    axes[0].set_yticks(range(len(rows)), labels)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    for axis in axes:
        axis.grid(axis="x", color="#dddddd", linewidth=0.6)
        for row in range(len(rows) - 1):
            axis.axhline(row + 0.5, color="#eeeeee", linewidth=0.8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=140)
