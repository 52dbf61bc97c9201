"""``softcvi demo``: two posteriors, two methods, one page, about a minute."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import App, Parameter

from softcvi.cli._common import Computing, Flag
from softcvi.cli._errors import CommandError
from softcvi.cli._folder import hold_folder
from softcvi.cli._terminal import say

app = App(
    name="demo",
    help="Fit SLCP (four modes) and eight schools (a heavy tail) with SoftCVI and with "
    "the ELBO, and write one page with reference draws beside them. Takes about a "
    "minute on two cores; less the second time.",
    help_epilogue="""\
examples:
  softcvi demo
  softcvi demo --out demo --picture slcp.png
""",
)
_NEXT = """\
try next:
  softcvi fit model.py:model --data data.json    your own model
  softcvi --help                                 everything else"""
_METHODS = {"softcvi": "SoftCVI", "elbo": "ELBO"}
_INTRODUCTION = (
    "Both methods train the same guide for the same number of steps. The first tables "
    "and pictures show the guides as they were trained: a method that loses mass shows "
    "it in the modes of SLCP and in the tail of eight schools. Verdicts, estimates and "
    "marginals are about draws that importance weights have corrected."
)
_LEVELS = (0.5, 0.9)


class _Fitted(NamedTuple):
    """A fit, and the draws of its guide before weights correct them."""

    view: Any
    own_draws: dict[str, Any]

    def as_trained(self) -> Any:
        """The view with the guide's own draws."""
        from softcvi.report import as_columns

        return dataclasses.replace(self.view, columns=as_columns(self.own_draws))


@app.default
def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the page.")] = Path("softcvi-demo"),
    seed: Annotated[int, Parameter(help="Seed of all random numbers.")] = 0,
    steps: Annotated[
        int | None, Parameter(help="Steps of each fit (5000 and 3000).")
    ] = None,
    picture: Annotated[
        Path | None,
        Parameter(help="Also draw SLCP as a PNG, SVG or PDF: reference and methods."),
    ] = None,
    quiet: Annotated[Flag, Parameter(help="Print nothing.")] = False,
    common: Computing = Computing(),  # noqa: B008
) -> None:
    """Fit two posteriors with SoftCVI and with the ELBO, and write a page."""
    from softcvi.demo import eight_schools, slcp
    from softcvi.report import pair_chart, write_report

    if steps is not None and steps < 1:
        raise CommandError(f"--steps: must be at least 1; got {steps}.")
    began = time.perf_counter()
    views, tables, trained = [], [], []
    with hold_folder(out):
        for task in (slcp(), eight_schools()):
            pair = [_fit(task, method, seed, steps, quiet) for method in _METHODS]
            tables.append(_at_a_glance(task, pair))
            say(_as_text(tables[-1]), quiet=quiet)
            views += [fitted.view for fitted in pair]
            trained.append([fitted.as_trained() for fitted in pair])
        drawn = [pair_chart(pair, ", guides as trained") for pair in trained]
        charts = [chart for chart in drawn if chart is not None]
        page = write_report(
            views,
            out / "demo.html",
            title="SoftCVI and the ELBO, side by side",
            introduction=_INTRODUCTION,
            tables=tables,
            charts=charts,
        )
    say(f"done in {time.perf_counter() - began:.0f} s", quiet=quiet)
    say(f"page       {page.resolve()}", quiet=quiet)
    if picture is not None:
        from softcvi.report import draw_pair

        draw_pair(trained[0], picture)
        say(f"picture    {picture.resolve()}", quiet=quiet)
    say(f"\n{_NEXT}", quiet=quiet)


def _fit(task: Any, method: str, seed: int, steps: int | None, quiet: bool) -> _Fitted:
    import jax

    import softcvi
    from softcvi.cli._progress import make_reporter
    from softcvi.report import FitView

    guide_key, fit_key = jax.random.split(jax.random.key(seed))
    steps = task.steps if steps is None else steps
    result = softcvi.fit(
        fit_key,
        task.target,
        task.guide(guide_key),
        objective={"softcvi": softcvi.SoftCVI, "elbo": softcvi.ELBO}[method](),
        steps=steps,
        progress=make_reporter(quiet, f"{task.title}, {_METHODS[method]}"),
    )
    if result.status == "interrupted":
        raise KeyboardInterrupt
    view = FitView.from_result(
        result,
        name=_METHODS[method],
        method=method,
        posterior=task.title,
        settings={"task": task.name, "steps": steps, "seed": seed},
        reference=task.reference,
        pair=task.pair,
    )
    return _Fitted(view, result.importance.draws)


def _at_a_glance(task: Any, pair: list[_Fitted]) -> Any:
    """What the reference and the two guides say, side by side."""
    import numpy as np

    from softcvi.report import Table

    rows = [
        (name, feature(task.reference), *(feature(f.own_draws) for f in pair))
        for name, feature in task.features.items()
    ]
    for level in _LEVELS:
        shares = [np.interp(level, *fitted.view.coverage) for fitted in pair]
        rows.append(
            (
                f"share of the reference in the guide's {level:.0%} region",
                f"{level:.0%}",
                *(f"{share:.0%}" for share in shares),
            )
        )
    rows += [
        ("verdict on the corrected draws", "", *(f.view.level for f in pair)),
        ("k-hat (below 0.7 is usable)", "", *(f"{f.view.khat:.2f}" for f in pair)),
        ("seconds", "", *(f"{sum(f.view.seconds.values()):.1f}" for f in pair)),
    ]
    header = ("guide as trained", "reference", *(f.view.label for f in pair))
    return Table.of_text(task.title, header, rows)


def _as_text(table: Any) -> str:
    texts = [table.header, *([cell.text for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        row[0].ljust(widths[0])
        + "".join(
            cell.rjust(width + 2)
            for cell, width in zip(row[1:], widths[1:], strict=True)
        )
        for row in texts
    ]
    return "\n".join(["", table.caption, *(line.rstrip() for line in lines), ""])
