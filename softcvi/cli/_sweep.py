"""``softcvi sweep``: a grid of fits, on one core, on many, or on a cluster."""

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from softcvi.cli._common import Computing, Flag, ImportLimit
from softcvi.cli._errors import CommandError
from softcvi.cli._folder import hold_folder, refuse_links
from softcvi.cli._reading import READING_SECONDS
from softcvi.cli._terminal import say

app = App(
    name="sweep",
    help="Fit every combination of a grid once, and keep one record per fit.",
    help_epilogue="""\
The grid is a YAML file; only `models` is required:
  models: [a.py:model, b.stan]     files as `softcvi fit` takes them
  data: [first.json, second.json]
  guides: [auto, full-rank]        auto, mean-field, full-rank, full-rank-t,
                                   low-rank, student-t, flow, coupling
  objectives: [softcvi, elbo]      softcvi, elbo, snis-fkl
  particles: [8, 32]
  alphas: [0.75, 1.0]
  seeds: 5                         a number, or a list
  steps: 10000

files written to --out:
  records.jsonl   one record per fit: settings, verdict, estimates, where from
  table.md        the records in short
  sweep.png       k-hat, time and verdicts of every setting

The same command goes on where it was interrupted; what is finished never runs again.

examples:
  softcvi sweep grid.yaml --out sweep
  softcvi sweep grid.yaml --executor processes --workers 8
  softcvi sweep grid.yaml --executor dask --scheduler tcp://node1:8786
""",
)


@app.default
def sweep(
    grid: Annotated[Path, Parameter(name="GRID", help="The grid, a YAML file.")],
    *,
    executor: Annotated[
        Literal["serial", "processes", "dask"], Parameter(help="Where to run the fits.")
    ] = "serial",
    scheduler: Annotated[
        str | None, Parameter(help="Address of a Dask scheduler (a local cluster).")
    ] = None,
    workers: Annotated[
        int | None, Parameter(help="Processes on this machine (one per core).")
    ] = None,
    out: Annotated[Path, Parameter(help="Folder for the records.")] = Path(
        "softcvi-sweep"
    ),
    import_limit: ImportLimit = READING_SECONDS,
    quiet: Annotated[Flag, Parameter(help="No progress and no table.")] = False,
    common: Computing = Computing(),  # noqa: B008
) -> int:
    """Run what is missing of a grid."""
    from softcvi import sweeps
    from softcvi._atomic import write_text
    from softcvi.cli._progress import make_reporter

    if scheduler is not None and executor != "dask":
        raise CommandError("--scheduler: is of use only with --executor dask.")
    if workers is not None and executor == "serial":
        raise CommandError("--workers: a serial sweep has one. Name an --executor.")
    combinations = sweeps.Grid.read(grid)
    makers: dict[str, Any] = {
        "serial": sweeps.SerialExecutor,
        "processes": lambda: sweeps.ProcessExecutor(workers),
        "dask": lambda: sweeps.DaskExecutor(scheduler, workers),
    }
    with hold_folder(out):
        refuse_links(out, "records.jsonl", "table.md", "sweep.png")
        result = sweeps.sweep(
            combinations,
            functools.partial(load_model, seconds=import_limit),
            out,
            executor=makers[executor](),
            progress=make_reporter(quiet, "sweep"),
        )
        table = result.table()
        write_text(out / "table.md", table + "\n")
        written = [out / "records.jsonl", out / "table.md", *_drawn(result, out)]
    say(table, quiet=quiet)
    say(f"\nwrote {', '.join(map(str, written))}", quiet=quiet)
    return 1 if result.num_failed else 0


def _drawn(result: Any, out: Path) -> list[Path]:
    """The picture of a sweep, where matplotlib is installed."""
    from softcvi.report import draw_sweep

    if find_spec("matplotlib") is None:
        return []

    draw_sweep(result.labelled_groups(), out / "sweep.png")
    return [out / "sweep.png"]


def load_model(model: str, data: str | None, seconds: float = READING_SECONDS) -> Any:
    """The target of a model file and a data file; workers import this by name."""
    from softcvi.cli._model_file import ModelFile

    file = ModelFile.parse(model, None if data is None else Path(data), seconds)
    return file.load(file.read_data())
