"""The posterior as negative distribution, beside the proposal."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softcvi.fitting import AbstractReporter
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import metrics_figure, save_figure
from softcvi_experiments._reproduce import Reproduction, run_all
from softcvi_experiments._settings import Settings, check_names
from softcvi_experiments._tables import as_markdown, compare
from softcvi_experiments.appendix._variants_report import variants_figure
from softcvi_experiments.references import get_source
from softcvi_experiments.tasks import PAPER_TASKS

_TEMPERED = ("softcvi-0.75", "softcvi-1")
_LABELS = {
    "softcvi-0.75": "proposal^0.75",
    "softcvi-1": "proposal^1",
    "posterior softcvi-0.75": "posterior^0.75",
    "posterior softcvi-1": "posterior^1",
}


def reproduce_negatives(
    out: str | Path,
    *,
    tasks: Sequence[str] = PAPER_TASKS,
    others: Sequence[str] = ("snis-fkl", "elbo"),
    runs: int = 50,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Run SoftCVI with both negatives, and compare with the paper.

    Writes ``records.jsonl``; the paper's figure for the posterior as negative
    (``metrics_posterior_negative``) with its table; and ``negatives``, which shows
    both negatives side by side.

    Args:
        out: Output folder.
        tasks: Task names.
        others: Methods to show beside SoftCVI.
        runs: Runs of each task and method.
        settings: What to run them with; their ``negative`` is not used.
        data_dir: Folder or mirror to read references from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> reproduce_negatives("out", tasks=["two_moons"])
        Traceback (most recent call last):
        ...
        ValueError: unknown task 'two_moons'; known: eight_schools, ...
    """
    settings = Settings() if settings is None else settings
    check_names(list(tasks), list(_TEMPERED), runs)
    records, source = RecordStore(out), get_source(settings.reference, data_dir)
    found: dict[str, list[dict[str, Any]]] = {}
    for negative, methods in (
        ("proposal", (*_TEMPERED, *others)),
        ("posterior", _TEMPERED),
    ):
        found[negative] = run_all(
            records,
            tasks,
            methods,
            runs,
            settings.with_(negative=negative),
            source,
            progress,
            say,
        )
    beside = [r for r in found["proposal"] if r["method"] in others]
    tables = {
        negative: as_markdown(compare(rows, settings.with_(negative=negative), {}))
        for negative, rows in found.items()
    }
    table = "\n\n".join(f"{name} as negative\n\n{t}" for name, t in tables.items())
    path = records.folder / "negatives.md"
    path.write_text(table + "\n")
    files = [records.path, path]
    published = metrics_figure([*found["posterior"], *beside])
    files += save_figure(published, out, "metrics_posterior_negative")
    figure = variants_figure(_both(found), _LABELS, title="negative")
    files += save_figure(figure, out, "negatives")
    rows = [*found["proposal"], *found["posterior"]]
    return Reproduction(rows, table, files)


def _both(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    ours = [r for r in found["proposal"] if r["method"] in _TEMPERED]
    theirs = [{**r, "method": f"posterior {r['method']}"} for r in found["posterior"]]
    return [*ours, *theirs]
