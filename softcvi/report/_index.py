"""Many fits: a page each, and an index with a table that can be sorted."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcvi._atomic import write_text
from softcvi.report._distinct import with_own_names
from softcvi.report._page import as_views, render, write_report
from softcvi.report._table import comparison_table


def write_index(
    fits: Sequence[Any], folder: str | os.PathLike, *, title: str = "Fits"
) -> Path:
    """Write ``index.html`` with a comparison, and a page for each fit beside it.

    Args:
        fits: Results, or views of them.
        folder: Where to; made if it does not exist.
        title: Heading of the index.

    Returns:
        The index.

    Example:
        >>> import tempfile
        >>> from softcvi.report import FitView, write_index
        >>> index = write_index([FitView.example()] * 2, tempfile.mkdtemp())
        >>> sorted(page.name for page in index.parent.iterdir())
        ['01-example-softcvi-1.html', '02-example-softcvi-2.html', 'index.html']
    """
    views = with_own_names(as_views(fits))
    folder = Path(folder)
    digits = max(2, len(str(len(views))))
    links = [
        f"{i:0{digits}d}-{_slug(view.title)}.html" for i, view in enumerate(views, 1)
    ]
    for view, link in zip(views, links, strict=True):
        write_report(view, folder / link)
    index = folder / "index.html"
    html = render("index.html", title=title, table=comparison_table(views, links))
    write_text(index, html)
    return index


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "fit"
