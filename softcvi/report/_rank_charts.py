"""Ranks of simulation-based calibration: flat bars mean right posteriors."""

from typing import Any

import numpy as np
from scipy import stats

from softcvi.report._chart import Chart, draw, number
from softcvi.report.style import CARD, INK, SOFT
from softcvi.sweeps import Calibration

_WIDTH, _HEIGHT = 340, 210
_BINS, _FEWEST_PER_BIN = 20, 8
# Bars of a right posterior leave the band once in a hundred times.
_OUTSIDE = 0.01


def rank_charts(check: Calibration, most: int = 12) -> list[Chart]:
    """A histogram of the ranks of each scalar, for ``write_report(..., charts=...)``.

    Where posteriors are right bars are flat but for chance, whose size a band shows.
    They are high at both ends where posteriors are too narrow, high in the middle where
    too wide, and slanted where biased.

    Args:
        check: From ``softcvi.calibrate``.
        most: Scalars to show; those that are not calibrated come first.

    Example:
        >>> import numpy as np
        >>> from softcvi.report import rank_charts
        >>> from softcvi.sweeps import Calibration
        >>> even = Calibration({"mu": np.arange(100)}, num_draws=99, num_failed=0)
        >>> rank_charts(even)[0].title
        'Ranks of mu'
    """
    rows = sorted(check.rows, key=lambda row: row.finding == "calibrated")
    return [_histogram(row.name, row.finding, check) for row in rows[:most]]


def _histogram(name: str, finding: str, check: Calibration) -> Chart:
    bins = int(np.clip(check.num_datasets // _FEWEST_PER_BIN, 2, _BINS))
    edges = np.linspace(0, check.num_draws + 1, bins + 1)
    counts = np.histogram(check.ranks[name], edges)[0]
    band = stats.binom.interval(1 - _OUTSIDE, check.num_datasets, 1 / bins)

    def paint(axes: Any) -> None:
        axes.axhspan(*band, color=SOFT, alpha=0.35, lw=0, zorder=0)
        axes.bar(
            edges[:-1], counts, np.diff(edges), align="edge", color=INK, ec=CARD, lw=1
        )
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, None)
        axes.set_xlabel(f"rank among {check.num_draws} draws")
        axes.set_ylabel("data sets")

    low, high = band
    return Chart(
        title=f"Ranks of {name}",
        words=f"Ranks of the values of {name} that made the data, each among the draws "
        f"of its posterior; {check.num_datasets} data sets: {finding}. Bars of a right "
        f"posterior are between {low:.0f} and {high:.0f}, but for one in a hundred.",
        drawing=draw(_WIDTH, _HEIGHT, paint),
        width=_WIDTH,
        height=_HEIGHT,
        header=("ranks from", "data sets"),
        rows=tuple(
            (number(float(np.ceil(edge))), str(count))
            for edge, count in zip(edges, counts, strict=False)
        ),
    )
