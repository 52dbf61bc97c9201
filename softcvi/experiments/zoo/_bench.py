"""The zoo's bench: every model by every method, each case in a fresh process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from softcvi.experiments.zoo._case import METHODS, blank_record
from softcvi.experiments.zoo._picture import draw_picture
from softcvi.experiments.zoo._registry import select
from softcvi.experiments.zoo._table import markdown_table

DEFAULT_METHODS = (
    "fit",
    "fit_until",
    "auto_normal",
    "auto_mvn",
    "pathfinder",
    "nuts",
)


def read_records(path: Path | str) -> list[dict]:
    """Records of a bench, the last one of each case.

    Example:
        >>> read_records("no-such-folder/records.jsonl")
        []
    """
    if not Path(path).exists():
        return []
    cases = {}
    for line in Path(path).read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # A line cut short by an interruption: the case is run again.
        cases[record["model"], record["method"], record["seed"]] = record
    return list(cases.values())


def _run_in_process(case: tuple[str, str, int], timeout: float) -> dict:
    model, method, seed = case
    command = [sys.executable, "-m", "softcvi.experiments.zoo"]
    command += ["--case", model, method, str(seed)]
    # Compilation is part of what a user waits for, so no cache may hide it.
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    record = blank_record(model, method, seed) | {"status": "error"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return record | {"message": f"no answer within {timeout:.0f} s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return record | {"message": f"exit status {done.returncode}: {last[0]}"}


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

    Every case is a fresh process, so its time includes compilation and its failure
    stays its own. Records go to ``records.jsonl`` in the output folder as they come;
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
    chosen = select(models, split)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "records.jsonl"
    done = {
        (r["model"], r["method"], r["seed"])
        for r in read_records(path)
        if r["status"] == "ok"
    }
    todo = [
        (model.name, method, seed)
        for seed in seeds
        for model in chosen
        for method in methods
        if (model.name, method, seed) not in done
    ]
    lock = Lock()

    def one(case: tuple[str, str, int]) -> None:
        record = _run_in_process(case, timeout)
        with lock:
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            report(describe(record))

    try:
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(one, todo))
    finally:
        # An interrupted bench still shows what it has.
        records = read_records(path)
        write_report(records, folder)
    return records


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
    (Path(folder) / "zoo.md").write_text(markdown_table(records))
    draw_picture(records, Path(folder) / "zoo.png")
