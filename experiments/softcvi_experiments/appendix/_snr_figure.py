"""The figure of gradient signal, noise and their ratio."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcvi.report import own_settings
from softcvi_experiments._figures import new_figure
from softcvi_experiments.appendix._toy_normal import TRUE_LOG_SD, TRUE_MEAN
from softcvi_experiments.figures import METHOD_COLOURS, METHOD_LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS = {"signal": "signal", "noise": "noise", "ratio": "signal-to-noise ratio"}
_TRUTH = {"mean": TRUE_MEAN, "log_sd": TRUE_LOG_SD}
_SYMBOL = {"mean": "$\\mu$", "log_sd": "$\\log\\,\\sigma$"}
_STYLES = {"snis-fkl": "--"}


@own_settings()
def snr_figure(records: Sequence[dict[str, Any]]) -> "Figure":
    """Three rows of panels, a column for each dimension and parameter.

    Args:
        records: Records of curves.

    Example:
        >>> record = {
        ...     "dim": 1, "parameter": "mean", "method": "snis-fkl", "values": [0, 1],
        ...     "signal": [1, 2], "noise": [1, 1], "ratio": [1, 2],
        ... }
        >>> len(snr_figure([record]).axes)
        3
    """
    from matplotlib.lines import Line2D

    columns = list(dict.fromkeys((r["dim"], r["parameter"]) for r in records))
    figure, axes = new_figure(3, len(columns), 2.6, 1.9)
    for column, (dim, parameter) in zip(axes.T, columns, strict=True):
        here = [r for r in records if (r["dim"], r["parameter"]) == (dim, parameter)]
        column[0].set_title(f"$d$ = {dim}, {_SYMBOL[parameter]}")
        column[-1].set_xlabel(_SYMBOL[parameter])
        for axis, name in zip(column, _ROWS, strict=True):
            axis.axvline(_TRUTH[parameter], color="black", linestyle=":", linewidth=1)
            for record in here:
                axis.plot(
                    record["values"],
                    np.array(record[name], dtype=float),
                    _STYLES.get(record["method"], "-"),
                    color=METHOD_COLOURS[record["method"]],
                    linewidth=1.4,
                )
            # Linear near zero, so that a curve that touches zero is seen to do so.
            axis.set_yscale("symlog", linthresh=_threshold(here, name), linscale=0.5)
            axis.set_ylim(bottom=0)
    for axis, label in zip(axes[:, 0], _ROWS.values(), strict=True):
        axis.set_ylabel(label)
    figure.align_ylabels(axes[:, 0])
    handles = [
        Line2D(
            [],
            [],
            color=METHOD_COLOURS[m],
            linestyle=_STYLES.get(m, "-"),
            label=METHOD_LABELS[m],
        )
        for m in dict.fromkeys(record["method"] for record in records)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _threshold(records: list[dict[str, Any]], name: str) -> float:
    highest = max(float(np.max(np.array(r[name], dtype=float))) for r in records)
    return 10.0 ** np.floor(np.log10(max(highest, 1e-6)) - 1.5)
