"""Reports: self-contained HTML pages about fits."""

from softcvi.report._columns import as_columns
from softcvi.report._files import as_json, read_fit, save_fit
from softcvi.report._index import write_index
from softcvi.report._page import write_report
from softcvi.report._palette import METHOD_STYLES, Style, style_of
from softcvi.report._view import FitView

__all__ = [
    "METHOD_STYLES",
    "FitView",
    "Style",
    "as_columns",
    "as_json",
    "read_fit",
    "save_fit",
    "style_of",
    "write_index",
    "write_report",
]
