"""The zoo's bench: every model by every method, each pair in a fresh process."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from softcvi.sweeps import RecordStore
from softcvi_experiments.children import ChildError, run_tasks
from softcvi_experiments.zoo._case import METHODS, blank_record
from softcvi_experiments.zoo._picture import draw_picture
from softcvi_experiments.zoo._registry import select
from softcvi_experiments.zoo._table import zoo_page

IDENTITY = ("model", "method", "seed")
DEFAULT_METHODS = (
    "fit",
    "fit_until",
    "auto_normal",
    "auto_mvn",
    "pathfinder",
    "nuts",
)


def run_zoo(
    models: Iterable[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    seeds: Sequence[int] = (0,),
    split: str | None = None,
    out: Path | str = "softcvi-zoo",
    processes: int = 1,
    timeout: float = 1_800.0,
    report: Callable[[str], None] = print,
) -> list[dict]:
    """Run the zoo's bench, or what is left of it, and write table and picture.

    Every model and method is a fresh process, so that its time includes compilation
    (later seeds, marked ``compiled_before``, find it done) and its failure stays its
    own. Records go to ``records.jsonl`` in the output folder as they come;
    cases already there without an error are not run again.

    Args:
        models: Names of zoo models; all if None.
        methods: Names of methods (``fit``, ``fit_until``, ``fit_starts``,
            ``auto_normal``, ``auto_mvn``, ``pathfinder``, ``nuts``).
        seeds: Seeds of the runs.
        split: "development" or "report" for one half of the zoo.
        out: Output folder.
        processes: Cases at a time; times are only comparable with one.
        timeout: Seconds after which a case is given up.
        report: Where a line per case goes.

    Returns:
        All records of the output folder.
    """
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise ValueError(
            f"methods {unknown} are not known; choose from: {', '.join(METHODS)}."
        )
    store = RecordStore(out)
    done = {_identity(r) for r in store.latest(*IDENTITY) if r["status"] == "ok"}
    groups = [
        [
            {"model": model.name, "method": method, "seed": seed, "first": i == 0}
            for i, seed in enumerate(seeds)
            if (model.name, method, seed) not in done
        ]
        for model in select(models, split)
        for method in methods
    ]
    # Compilation is part of what a user waits for, so no cache may hide it.
    results = run_tasks(
        "softcvi_experiments.zoo._case",
        groups,
        jobs=processes,
        timeout=timeout,
        fresh=True,
    )
    try:
        for task, result in results:
            if isinstance(result, ChildError):
                blank = blank_record(*_identity(task))
                result = blank | {"status": "error", "message": str(result)}
            store.add([result])
            report(describe(result))
    finally:
        # An interrupted bench still shows what it has.
        records = store.latest(*IDENTITY)
        write_report(records, Path(out))
    return records


def _identity(record: dict) -> tuple[str, str, int]:
    return record["model"], record["method"], record["seed"]


def describe(record: dict) -> str:
    """A record in one line.

    Example:
        >>> describe({"model": "banana", "method": "fit", "seed": 0,
        ...           "status": "error", "message": "no answer within 9 s"})
        'banana fit seed 0: ERROR no answer within 9 s'
    """
    head = f"{record['model']} {record['method']} seed {record['seed']}"
    if record["status"] != "ok":
        return f"{head}: ERROR {record['message'].splitlines()[0]}"
    trusted = {True: "trusted", False: "not trusted", None: "no verdict"}
    return (
        f"{head}: mean error {record['mean_error']:.2f} sd at "
        f"{record['mean_error_at']}, sd ratio {record['sd_ratio_min']:.2f} to "
        f"{record['sd_ratio_max']:.2f}, {trusted[record['trusted']]}, "
        f"{record['seconds']:.1f} s"
    )


def write_report(records: list[dict], folder: Path | str) -> None:
    """Write ``zoo.md`` (summary and table) and ``zoo.png`` from records.

    Example:
        >>> write_report([], "softcvi-zoo")  # nothing to write
    """
    if not records:
        return
    (Path(folder) / "zoo.md").write_text(zoo_page(records))
    draw_picture(records, Path(folder) / "zoo.png")
