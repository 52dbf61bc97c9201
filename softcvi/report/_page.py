"""Self-contained HTML pages: of one fit or a few, and of many with an index."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcvi._atomic import write_text
from softcvi.fitting import FitResult
from softcvi.ladder import LadderResult
from softcvi.report._chart import Chart
from softcvi.report._check_charts import check_charts
from softcvi.report._curves import training_charts
from softcvi.report._distinct import with_own_names, with_own_styles
from softcvi.report._draw_charts import (
    marginal_charts,
    pair_chart,
    pairs_chart,
    reference_of,
)
from softcvi.report._table import (
    Table,
    advice,
    comparison_table,
    estimates_table,
    headline,
    meaning,
)
from softcvi.report._view import FitView

_MARGINAL_LIMIT = 12
Fit = FitView | FitResult | LadderResult


def write_report(
    fits: Fit | Sequence[Fit],
    path: str | os.PathLike,
    *,
    title: str | None = None,
    introduction: str = "",
    tables: Sequence[Table] = (),
    charts: Sequence[Chart] = (),
) -> Path:
    """Write one page that works offline, for one fit or a few side by side.

    Fits of the same posterior share their charts.

    Args:
        fits: A result, a view of one, or several.
        path: The HTML file.
        title: Heading of the page.
        introduction: A paragraph below the heading.
        tables: Tables that come first.
        charts: Charts below them.

    Returns:
        The file.

    Example:
        >>> import tempfile
        >>> from softcvi.report import FitView, write_report
        >>> page = write_report(FitView.example(), tempfile.mkdtemp() + "/report.html")
        >>> "This answer can be trusted." in page.read_text(encoding="utf-8")
        True
    """
    views = with_own_styles(with_own_names(as_views(fits)))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    groups = group_by_posterior(views)
    html = render(
        "page.html",
        title=title or _title(views),
        introduction=introduction,
        tables=tables,
        charts=charts,
        views=[_section(view) for view in views],
        table=comparison_table(views) if len(views) > 1 else None,
        groups=[_group(name, group) for name, group in groups.items()],
        versions=views[0].versions,
    )
    write_text(path, html)
    return path


def as_views(fits: Any) -> list[FitView]:
    """Normalise what ``write_report`` is given."""
    several = [fits] if isinstance(fits, Fit) else list(fits)
    if not several:
        raise ValueError("fits: give at least one.")
    return [f if isinstance(f, FitView) else FitView.from_result(f) for f in several]


def group_by_posterior(views: Sequence[FitView]) -> dict[str, list[FitView]]:
    """Fits by the posterior they are for, in their order."""
    groups: dict[str, list[FitView]] = {}
    for view in views:
        groups.setdefault(view.posterior, []).append(view)
    return groups


def render(template: str, **values: Any) -> str:
    """Fill one of the package's templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("softcvi.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def _title(views: list[FitView]) -> str:
    if len(views) == 1:
        return views[0].title
    return f"{len(views)} fits"


def _section(view: FitView) -> dict[str, Any]:
    return {
        "view": view,
        "headline": headline(view.level),
        "meaning": meaning(view.level),
        "advice": advice(view),
        "level": view.level.replace(" ", "-"),
        "seconds": {name: f"{value:.2f}" for name, value in view.seconds.items()},
    }


def _group(name: str, views: list[FitView]) -> dict[str, Any]:
    compared = len(views) > 1
    picture = pair_chart(views) if compared else None
    pairs: list[Chart | None] = [] if compared else [pairs_chart(views[0])]
    total = len(views[0].columns)
    return {
        "name": name or "Posterior",
        "views": views,
        "pictures": [chart for chart in (picture, *pairs) if chart is not None],
        "marginals": marginal_charts(views),
        "marginals_left_out": max(0, total - _MARGINAL_LIMIT),
        "checks": check_charts(views),
        "training": training_charts(views),
        "estimates": estimates_table(views),
        "has_reference": reference_of(views) is not None,
    }


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
