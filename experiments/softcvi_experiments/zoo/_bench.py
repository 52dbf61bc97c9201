"""The zoo's bench: every model by every method, each pair in a fresh process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from softcvi_experiments.zoo._case import METHODS, blank_record
from softcvi_experiments.zoo._picture import draw_picture
from softcvi_experiments.zoo._registry import select
from softcvi_experiments.zoo._table import markdown_table

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


def _run_in_process(
    model: str, method: str, seeds: list[int], timeout: float
) -> list[dict]:
    """Run one method on one model; the seeds share a process and its programs."""
    command = [sys.executable, "-m", "softcvi_experiments.zoo"]
    command += ["--case", model, method, ",".join(map(str, seeds))]
    # Compilation is part of what a user waits for, so no cache may hide it.
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout * len(seeds),
            check=False,
        )
        output = done.stdout
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        message = f"exit status {done.returncode}: {last}"
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"").decode(errors="replace")
        message = f"no answer within {timeout * len(seeds):.0f} s"
    answers = {}
    for line in output.splitlines():
        try:
            record = json.loads(line)
            answers[record["seed"]] = record
        except (json.JSONDecodeError, KeyError, TypeError):
            continue  # Not a record: something else that was printed.
    missing = {"status": "error", "message": message}
    return [
        answers.get(seed, blank_record(model, method, seed) | missing) for seed in seeds
    ]


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
    chosen = select(models, split)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "records.jsonl"
    done = {
        (r["model"], r["method"], r["seed"])
        for r in read_records(path)
        if r["status"] == "ok"
    }
    todo = {
        (model.name, method): [s for s in seeds if (model.name, method, s) not in done]
        for model in chosen
        for method in methods
    }
    lock = Lock()

    def one(case: tuple[tuple[str, str], list[int]]) -> None:
        (model, method), wanted = case
        for record in _run_in_process(model, method, wanted, timeout):
            with lock:
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                report(describe(record))

    try:
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(one, [case for case in todo.items() if case[1]]))
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
