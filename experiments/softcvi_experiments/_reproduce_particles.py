"""The paper's figures on the number of particles and on the other negative."""

from collections.abc import Sequence
from pathlib import Path

from softcvi.fitting import AbstractReporter
from softcvi.sweeps import RecordStore
from softcvi_experiments._figures import particles_figure, save_figure
from softcvi_experiments._methods import PAPER_METHODS
from softcvi_experiments._reproduce import (
    Reproduction,
    Say,
    reproduce_metrics,
    run_all,
)
from softcvi_experiments._settings import Settings, check_names
from softcvi_experiments.references import get_source
from softcvi_experiments.tasks import PAPER_TASKS

PARTICLES = (2, 4, 8, 16, 32, 64)


def reproduce_particles(
    out: str | Path,
    *,
    tasks: Sequence[str] = PAPER_TASKS,
    methods: Sequence[str] = PAPER_METHODS,
    runs: int = 50,
    particles: Sequence[int] = PARTICLES,
    settings: Settings | None = None,
    data_dir: str | Path | None = None,
    progress: bool | AbstractReporter = True,
    say: Say = lambda line: None,
) -> Reproduction:
    """Log probability and run time against K, and two more metrics figures.

    Those are the metrics with K = 2, and with the tempered posterior as negative.

    Args:
        out: Output folder.
        tasks: Task names.
        methods: Method names.
        runs: Runs of every task and method.
        particles: Numbers of particles.
        settings: What to run them with; its own K and negative are not used.
        data_dir: Folder or mirror to read references from.
        progress: Show bars.
        say: Told a line on each finished piece.

    Example:
        >>> import tempfile
        >>> reproduce_particles(tempfile.mkdtemp(), runs=0)
        Traceback (most recent call last):
        ...
        ValueError: runs: must be at least 1; got 0
    """
    settings = Settings() if settings is None else settings
    check_names(list(tasks), list(methods), runs)
    records, source = RecordStore(out), get_source(settings.reference, data_dir)
    rows = []
    for k in particles:
        chosen = settings.with_(num_particles=k, negative="proposal")
        say(f"K = {k}")
        rows += run_all(records, tasks, methods, runs, chosen, source, progress, say)
    files = save_figure(particles_figure(rows), out, "particles")
    tables = []
    variants = [(2, "proposal"), (8, "posterior")]
    for num_particles, negative in variants:
        chosen = settings.with_(num_particles=num_particles, negative=negative)
        done = reproduce_metrics(
            out,
            tasks=tasks,
            methods=methods,
            runs=runs,
            settings=chosen,
            data_dir=data_dir,
            limits=False,
            progress=progress,
            say=say,
        )
        rows += done.records
        files += done.files
        tables.append(f"K = {num_particles}, negative: {negative}\n\n{done.table}")
    return Reproduction(rows, "\n\n".join(tables), files)
