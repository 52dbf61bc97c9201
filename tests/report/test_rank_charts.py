"""Rank plots: what they count, and that a report shows them."""

import numpy as np
import pytest

from softcvi.report import FitView, rank_charts, write_report
from softcvi.sweeps import Calibration


@pytest.fixture(scope="module")
def check():
    rng = np.random.default_rng(0)
    narrow = np.floor(rng.beta(0.4, 0.4, size=400) * 101).astype(int)
    even = rng.integers(0, 101, size=400)
    return Calibration({"even": even, "narrow": narrow}, num_draws=100, num_failed=0)


def test_what_is_not_calibrated_comes_first_and_no_data_set_is_lost(check):
    charts = rank_charts(check)
    assert [chart.title for chart in charts] == ["Ranks of narrow", "Ranks of even"]
    assert "too narrow" in charts[0].words
    for chart in charts:
        assert sum(int(count) for _, count in chart.rows) == 400
    ends = [int(charts[0].rows[i][1]) for i in (0, -1)]
    middle = int(charts[0].rows[len(charts[0].rows) // 2][1])
    assert min(ends) > 2 * middle
    assert len(rank_charts(check, most=1)) == 1


def test_a_report_shows_them(check, tmp_path):
    page = write_report(
        FitView.example(), tmp_path / "report.html", charts=rank_charts(check)
    )
    html = page.read_text(encoding="utf-8")
    assert "Ranks of narrow" in html
    assert "data sets: too narrow" in html
