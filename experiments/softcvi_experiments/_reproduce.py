"""The paper's main figure again: metrics of all tasks and methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.random as jr

from softcvi.fitting import AbstractReporter
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import metrics_figure, save_figure
from softcvi_experiments._limit_store import stored_limits
from softcvi_experiments._methods import PAPER_METHODS
from softcvi_experiments._published import other_data_note, published
from softcvi_experiments._run import run_piece
from softcvi_experiments._settings import Settings, check_names
from softcvi_experiments._tables import Row, as_markdown, compare
from softcvi_experiments.references import AbstractReferenceSource, get_source
from softcvi_experiments.tasks import PAPER_TASKS, get_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Say = Callable[[str], None]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction left behind.

    Args:
        records: One record per fit.
        table: The comparison as Markdown, empty where there is none.
        files: Files written.

    Example:
        >>> Reproduction([], "", []).table
        ''
    """

    records: list[dict[str, Any]]
    table: str
    files: list[Path]


def reproduce_metrics(
    out: str | Path,
    *,
    tasks: Sequence[str] = PAPER_TASKS,
    methods: Sequence[str] = PAPER_METHODS,
    runs: int = 50,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    limits: bool = True,
    progress: bool | AbstractReporter = True,
    say: Say = lambda line: None,
) -> Reproduction:
    """Run every task and method, and compare with the paper.

    Writes ``records.jsonl``, ``metrics.png``, ``.svg``, ``.pdf`` and ``table.md``.
    Called again with the same folder it goes on where it stopped.

    Args:
        out: Output folder.
        tasks: Task names.
        methods: Method names.
        runs: Runs of every task and method.
        settings: What to run them with.
        data_dir: Folder or mirror to read references from.
        limits: Also fit the families to reference draws by maximum likelihood.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> result = reproduce_metrics(
        ...     tempfile.mkdtemp(), tasks=["linear_regression"], methods=["elbo"],
        ...     runs=1, settings=Settings(steps=2), progress=False,
        ... )
        >>> [path.name for path in result.files]
        ['records.jsonl', 'table.md', 'metrics.png', 'metrics.svg', 'metrics.pdf']
    """
    settings = Settings() if settings is None else settings
    check_names(list(tasks), list(methods), runs)
    records = RecordStore(out)
    source = get_source(settings.reference, data_dir)
    rows = run_all(records, tasks, methods, runs, settings, source, progress, say)
    reachable = _limits(records, tasks, runs, settings, source, say) if limits else {}
    comparison = compare(rows, settings, reachable)
    table = as_markdown(comparison) + other_data_note(tasks, settings)
    name = figure_name(settings)
    table_path = records.folder / name.replace("metrics", "table")
    table_path = table_path.with_suffix(".md")
    table_path.write_text(table + "\n")
    files = [records.path, table_path]
    files += save_figure(_figure(rows, comparison, settings), out, name)
    return Reproduction(rows, table, files)


def _figure(
    rows: list[dict[str, Any]], comparison: list[Row], settings: Settings
) -> "Figure":
    pairs = {(record["task"], record["method"]) for record in rows}
    theirs = {pair: published(*pair, settings) or {} for pair in pairs}
    limits = {
        row.task: row.limit
        for row in comparison
        if row.metric == "log probability" and row.limit is not None
    }
    known = {pair: numbers for pair, numbers in theirs.items() if numbers}
    return metrics_figure(rows, known, limits)


def run_all(
    records: RecordStore,
    tasks: Sequence[str],
    methods: Sequence[str],
    runs: int,
    settings: Settings,
    source: AbstractReferenceSource,
    progress: bool | AbstractReporter,
    say: Say,
) -> list[dict[str, Any]]:
    """Run every piece that is not on record yet; return the records of all.

    Args:
        records: Where results are kept.
        tasks: Task names.
        methods: Method names.
        runs: Runs of every task and method.
        settings: What to run them with.
        source: Where references come from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> records, source = RecordStore(tempfile.mkdtemp()), get_source("builtin")
        >>> tasks, settings = ["linear_regression"], Settings(steps=2)
        >>> rows = run_all(
        ...     records, tasks, ["elbo"], 1, settings, source, False, print
        ... )
        linear_regression, elbo: 1 runs, ... s (1 of 1)
    """
    rows = []
    pieces = [(task, method) for task in tasks for method in methods]
    for i, (task, method) in enumerate(pieces):
        piece = run_piece(
            task, method, runs, settings, source, records, progress=progress
        )
        seconds = piece[-1]["seconds_run"] + piece[-1]["seconds_compile"]
        say(
            f"{task}, {method}: {len(piece)} runs, {seconds:.1f} s "
            f"({i + 1} of {len(pieces)})"
        )
        rows += piece
    return rows


def figure_name(settings: Settings) -> str:
    """The metrics figure's file name: the paper has three of them.

    Args:
        settings: What the runs were made with.

    Example:
        >>> figure_name(Settings()), figure_name(Settings(num_particles=2))
        ('metrics', 'metrics_k2')
    """
    name = "metrics"
    if settings.num_particles != 8:
        name += f"_k{settings.num_particles}"
    if settings.negative != "proposal":
        name += f"_{settings.negative}_negative"
    return name


def _limits(
    records: RecordStore,
    tasks: Sequence[str],
    runs: int,
    settings: Settings,
    source: AbstractReferenceSource,
    say: Say,
) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in tasks:
        task = get_task(name)
        data = task.data(jr.key(settings.seed), list(range(min(runs, 10))), source)
        if data.limit is None:
            found |= stored_limits(records.folder, task, data, settings.reference)
            say(f"{name}: maximum likelihood fit")
    return found
