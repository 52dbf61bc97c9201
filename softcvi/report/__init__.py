"""Reports: self-contained HTML pages about fits."""

from softcvi.report._chart import Chart
from softcvi.report._columns import as_columns
from softcvi.report._draw_charts import pair_chart
from softcvi.report._files import as_json, read_fit, save_fit
from softcvi.report._page import write_index, write_report
from softcvi.report._picture import draw_pair, draw_sweep
from softcvi.report._rank_charts import rank_charts
from softcvi.report._reference import needs_model
from softcvi.report._table import Table
from softcvi.report._view import FitView
from softcvi.report.style import METHOD_STYLES, Style, own_settings, style_of

__all__ = [
    "METHOD_STYLES",
    "Chart",
    "FitView",
    "Style",
    "Table",
    "as_columns",
    "as_json",
    "draw_pair",
    "draw_sweep",
    "needs_model",
    "own_settings",
    "pair_chart",
    "rank_charts",
    "read_fit",
    "save_fit",
    "style_of",
    "write_index",
    "write_report",
]
