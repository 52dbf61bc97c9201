"""Tables of fits and of estimates, and the verdict in words."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from softcvi.report._chart import number
from softcvi.report._view import FitView, by_interest

_ESTIMATES = 40
_SEVERITY = {"trusted": 0, "caution": 1, "not trusted": 2}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and what it is sorted by.

    Args:
        text: What is shown.
        key: What it is sorted by; the text by default.
        link: Where it leads, if anywhere.
        level: A verdict, to colour it by.

    Example:
        >>> Cell("0.5", 0.5).key
        0.5
    """

    text: str
    key: float | str | None = None
    link: str | None = None
    level: str | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """A table that can be sorted.

    Args:
        caption: What it shows.
        header: Names of the columns.
        rows: The cells.

    Example:
        >>> Table("none", ("a",), ()).header
        ('a',)
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of_text(
        cls, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> "Table":
        """A table of plain text, sorted by it.

        Args:
            caption: What it shows.
            header: Names of the columns.
            rows: What is shown.
        """
        cells = tuple(tuple(Cell(text, text) for text in row) for row in rows)
        return cls(caption, tuple(header), cells)


def comparison_table(
    views: Sequence[FitView], links: Sequence[str] | None = None
) -> Table:
    """A row for each fit; columns that no fit has are left out."""
    columns: dict[str, list[float | None]] = {
        "k-hat": [view.khat for view in views],
        "ESS share": [view.ess_share for view in views],
        "log evidence": [view.log_evidence for view in views],
        "ELBO": [view.last("elbo") for view in views],
        "label ESS": [view.last("label_ess") for view in views],
        "reference log prob": [view.reference_log_prob for view in views],
        "mean accuracy": [view.mean_accuracy for view in views],
        "steps": [float(view.steps) for view in views],
        "seconds": [sum(view.seconds.values()) for view in views],
    }
    columns = {k: v for k, v in columns.items() if any(x is not None for x in v)}
    rows = []
    for i, view in enumerate(views):
        link = None if links is None else links[i]
        cells = [
            Cell(view.title, view.title.lower(), link=link),
            Cell(view.level, _SEVERITY.get(view.level, 3), level=view.level),
        ]
        cells += [Cell(number(v[i]), _key(v[i])) for v in columns.values()]
        rows.append(tuple(cells))
    return Table("Fits compared", ("fit", "verdict", *columns), tuple(rows))


def estimates_table(views: Sequence[FitView]) -> Table:
    """Mean and standard deviation of every scalar, and quantiles of a fit alone."""
    reference = next((v.reference for v in views if v.reference is not None), None)
    alone = len(views) == 1
    header = ["parameter"]
    if reference is not None:
        header += ["reference mean", "sd"]
    for view in views:
        header += [f"{view.label} mean", "sd"] + (["5%", "95%"] if alone else [])
    rows = []
    for name in by_interest(views)[:_ESTIMATES]:
        values: list[float | None] = []
        if reference is not None:
            values += _moments(reference.get(name))
        for view in views:
            values += _moments(view.columns.get(name))
            if alone:
                values += list(np.quantile(view.columns[name], [0.05, 0.95]))
        cells = (Cell(number(value, 4), _key(value)) for value in values)
        rows.append((Cell(name, name), *cells))
    left_out = len(views[0].columns) - len(rows)
    return Table(_caption(views, left_out), tuple(header), tuple(rows))


def _caption(views: Sequence[FitView], left_out: int) -> str:
    alone = len(views) == 1
    shown = ", standard deviation, 5% and 95% quantile" if alone else " and sd"
    more = f" ({left_out} more are in the draws)" if left_out else ""
    sources = list(dict.fromkeys(v.draws_are for v in views if v.draws_are))
    whose = f" Draws are {' or '.join(sources)}." if sources else ""
    return f"Mean{shown} of every parameter{more}.{whose}"


def _moments(column: np.ndarray | None) -> list[float | None]:
    if column is None:
        return [None, None]
    column = np.asarray(column, float)
    return [float(np.mean(column)), float(np.std(column))]


def _key(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


_HEADLINES = {
    "trusted": "This answer can be trusted.",
    "caution": "Use this answer with caution.",
    "not trusted": "Do not trust this answer yet.",
}
_MEANINGS = {
    "trusted": "Nothing that was checked speaks against it.",
    "caution": "It is probably close, but something speaks against it.",
    "not trusted": "What was checked says that it differs from the posterior.",
}


def headline(level: str) -> str:
    """The verdict as a sentence."""
    return _HEADLINES.get(level, level)


def meaning(level: str) -> str:
    """What the verdict rests on."""
    return _MEANINGS.get(level, "")


def advice(view: FitView) -> list[str]:
    """What to try next."""
    tips = []
    if view.status == "interrupted":
        tips.append("It was interrupted: run it again with --resume to go on.")
    if view.num_bad[0]:
        tips.append(
            f"{view.num_bad[0]} log densities were not numbers: check the model where "
            "parameters are extreme."
        )
    if view.level == "trusted":
        return tips
    tips += [tip for tip in view.advice if tip not in tips]
    return tips or ["Look at the charts of the checks below."]
