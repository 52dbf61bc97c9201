"""Runs of victims: one that meets a fault, and one that goes on after it."""

import dataclasses
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from softcvi_experiments.children import environment

_SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class Run:
    """How a victim ended.

    Attributes:
        code: Its exit status, negative for a signal.
        report: What it said at the end, if it came to that.
        errors: What it wrote to standard error.
    """

    code: int
    report: dict[str, Any]
    errors: str


def run_victim(
    program: str,
    out: Path,
    fault: dict[str, Any],
    cache: Path,
    sent: tuple[int, float] | None = None,
) -> Run:
    """Run a program in a process of its own, with a fault.

    Args:
        program: Its name.
        out: Its output folder.
        fault: What it meets; see ``_victim``.
        cache: Folder of compiled programs.
        sent: A signal, and after how many seconds of work it comes.
    """
    task = json.dumps({"program": program, "out": str(out), "fault": fault})
    child = subprocess.Popen(
        [sys.executable, "-m", "softcvi_experiments.faults._victim", task],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(threads=1, cache=cache),
    )
    try:
        if sent is not None and child.stdout is not None:
            child.stdout.readline()
            time.sleep(sent[1])
            child.send_signal(sent[0])
        output, errors = child.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        output, errors = child.communicate()
        errors += f"\nno end within {_SECONDS:.0f} s"
    lines = output.splitlines()
    is_reported = bool(lines) and lines[-1].startswith("{")
    return Run(child.returncode, json.loads(lines[-1]) if is_reported else {}, errors)


def contents(folder: Path) -> dict[str, int]:
    """Files of a folder with their sizes."""
    if not folder.exists():
        return {}
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def baseline(task: dict[str, Any]) -> dict[str, Any]:
    """A program without a fault: its answer, files, calls and time.

    Args:
        task: ``case``, the program, and ``folder`` for everything.
    """
    from softcvi_experiments.faults._programs import PROGRAMS

    name, folder = task["case"], Path(task["folder"])
    out = folder / f"{name}-alone"
    # The first one fills the cache of compiled programs; the second is timed.
    run_victim(name, folder / f"{name}-warm", {"kind": "none"}, folder / "cache")
    run = run_victim(name, out, {"kind": "none"}, folder / "cache")
    if run.code != 0:
        raise RuntimeError(f"{name} fails without a fault: {run.errors[-500:]}")
    found = {
        "answer": PROGRAMS[name].answer(out),
        "files": contents(out),
        "calls": run.report["calls"],
        "run_seconds": run.report["seconds"],
    }
    (folder / f"{name}.json").write_text(json.dumps(found))
    return {**task, **found, "ok": True}


def meets_fault(task: dict[str, Any]) -> dict[str, Any]:
    """A program that meets one fault, runs again, and is compared.

    Args:
        task: ``part``, ``case`` (the program), ``seed`` and ``folder``.
    """
    name, seed, folder = task["case"], task["seed"], Path(task["folder"])
    alone = json.loads((folder / f"{name}.json").read_text())
    fault, sent = _FAULTS[task["part"]](random.Random(f"{name} {seed}"), alone)
    out = folder / f"{name}-{task['part']}-{seed}"
    run = run_victim(name, out, fault, folder / "cache", sent)
    after = contents(out)
    again = Run(0, {}, "")
    tries = 0
    while tries == 0 or (again.code != 0 and tries < 2):
        again = run_victim(name, out, {"kind": "none"}, folder / "cache")
        tries += 1
    found = _compared(name, out, alone, again)
    return {
        **task,
        "fault": fault | ({"sent": sent} if sent else {}),
        "code": run.code,
        "errors": run.errors[-400:],
        "unfinished": [file for file in after if file.endswith(".part")],
        **found,
    }


def _compared(
    name: str, out: Path, alone: dict[str, Any], again: Run
) -> dict[str, Any]:
    from softcvi_experiments.faults._programs import PROGRAMS

    if again.code != 0:
        return {"ok": False, "equal": False, "left": [], "again": again.errors[-400:]}
    try:
        answer = PROGRAMS[name].answer(out)
        why = ""
    except Exception as error:
        answer, why = {}, f"{type(error).__name__}: {error}"
    left = sorted(set(contents(out)) - set(alone["files"]))
    missing = sorted(set(alone["files"]) - set(contents(out)))
    is_equal = answer == alone["answer"]
    return {
        "ok": is_equal and not left and not missing,
        "equal": is_equal,
        "doubled": sum(entry.endswith(", again") for entry in answer),
        "left": left,
        "missing": missing,
        "again": why,
    }


Choice = tuple[dict[str, Any], tuple[int, float] | None]


def _kill(choose: random.Random, alone: dict[str, Any]) -> Choice:
    """SIGKILL at a random moment, at a call that ends a write, or inside a write."""
    kind = choose.choice(["time", "time", "kill-call", "kill-write"])
    if kind == "time":
        seconds = choose.uniform(0.0, alone["run_seconds"])
        return {"kind": "none"}, (signal.SIGKILL, seconds)
    if kind == "kill-write":
        return {"kind": kind, "size": _size(choose, alone)}, None
    return {"kind": kind, **_call(choose, alone)}, None


def _size(choose: random.Random, alone: dict[str, Any]) -> int:
    largest = choose.choice([size for size in alone["files"].values() if size] or [1])
    return choose.choice([0, largest // 2, largest - 1, choose.randrange(largest)])


def _call(choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    made = {name: count for name, count in alone["calls"].items() if count}
    name = choose.choice(sorted(made) or ["fsync"])
    return {"call": name, "at": choose.randint(1, made.get(name, 1))}


def _signal(choose: random.Random, alone: dict[str, Any]) -> Choice:
    number = choose.choice([signal.SIGTERM, signal.SIGHUP])
    return {"kind": "none"}, (int(number), choose.uniform(0.0, alone["run_seconds"]))


_FAULTS = {"kills": _kill, "signals": _signal}
