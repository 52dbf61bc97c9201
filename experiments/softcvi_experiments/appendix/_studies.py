"""What the paper leaves open, on its four tasks: one choice of SoftCVI at a time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softcvi.fitting import AbstractReporter
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import save_figure
from softcvi_experiments._reproduce import Reproduction
from softcvi_experiments._run import run_piece
from softcvi_experiments._settings import Settings, check_names
from softcvi_experiments.appendix._variants import get_study
from softcvi_experiments.appendix._variants_report import (
    variants_figure,
    variants_table,
)
from softcvi_experiments.references import get_source
from softcvi_experiments.tasks import PAPER_TASKS, get_task

STUDY_SETTINGS = Settings(steps=10_000, recipe="default")


def reproduce_study(
    out: str | Path,
    *,
    study: str,
    tasks: Sequence[str] = PAPER_TASKS,
    runs: int = 20,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Run every variant of a study on every task, with the three metrics for each.

    Writes ``records.jsonl`` and ``study_NAME.md``, ``.png``, ``.svg``, ``.pdf``. Fits
    that are on record are not repeated.

    Args:
        out: Output folder.
        study: Its name: divergences, temperature, smoothing, proposals or alpha.
        tasks: Task names.
        runs: Runs of each task and variant.
        settings: What to run them with; our own recipe and 10,000 steps by default.
        data_dir: Folder or mirror to read references from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> reproduce_study("out", study="weather")
        Traceback (most recent call last):
        ...
        ValueError: unknown study 'weather'; known: divergences, ...
    """
    settings = STUDY_SETTINGS if settings is None else settings
    variants = get_study(study)
    check_names(list(tasks), ["softcvi-0.75"], runs)
    records, source = RecordStore(out), get_source(settings.reference, data_dir)
    rows: list[dict[str, Any]] = []
    for name in tasks:
        for variant in variants:
            piece = run_piece(
                name,
                variant.name,
                runs,
                settings,
                source,
                records,
                objective=variant.objective(get_task(name), settings.num_particles),
                progress=progress,
            )
            say(f"{name}, {variant.name}: {piece[-1]['seconds_run']:.1f} s")
            rows += piece
    labels = {variant.name: variant.label for variant in variants}
    table = variants_table(rows, labels)
    path = records.folder / f"study_{study}.md"
    path.write_text(table + "\n")
    figure = variants_figure(rows, labels, title=study)
    files = [records.path, path, *save_figure(figure, out, f"study_{study}")]
    return Reproduction(rows, table, files)
