"""Runs of victims: one that meets a fault, and one that goes on after it."""

import collections
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from softcvi_experiments.children import environment

_SECONDS = 300.0
_ENDS = (signal.SIGKILL, signal.SIGXFSZ, signal.SIGTERM, signal.SIGHUP)


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


def run_victim(program: str, out: Path, fault: dict[str, Any], cache: Path) -> Run:
    """Run a program in a process of its own, with a fault.

    Args:
        program: Its name.
        out: Its output folder.
        fault: What it meets; see ``_victim``. A ``signal`` comes ``after`` so many
            seconds of computing, so that a busy machine does not put it off.
        cache: Folder of compiled programs.
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
        if "signal" in fault and child.stdout is not None:
            child.stdout.readline()
            ends = _cpu_seconds(child.pid) + fault["after"]
            while child.poll() is None and _cpu_seconds(child.pid) < ends:
                time.sleep(0.005)
            child.send_signal(fault["signal"])
        output, errors = child.communicate(timeout=_SECONDS)
    finally:
        child.kill()
    lines = output.splitlines()
    is_reported = bool(lines) and lines[-1].startswith("{")
    return Run(child.returncode, json.loads(lines[-1]) if is_reported else {}, errors)


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    """A program without a fault: its answer, files, calls and computing time.

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
        "cpu_seconds": run.report["cpu_seconds"],
    }
    (folder / f"{name}.json").write_text(json.dumps(found))
    return {**task, **found, "ok": True}


def meets_faults(task: dict[str, Any]) -> dict[str, Any]:
    """A program that is ended again and again, until it comes to its end.

    Each run goes on in the folder of the one before. A run that no fault has ended is
    compared with one that met none, and the next begins in an empty folder.

    Args:
        task: ``part``, ``case`` (the program), ``seed``, ``folder``, and the ``count``
            of faults that end it.
    """
    name, folder = task["case"], Path(task["folder"])
    alone = json.loads((folder / f"{name}.json").read_text())
    choose = random.Random(f"{task['part']} {name} {task['seed']}")
    counts = dict.fromkeys(("times", "held", "other", "doubled", "left"), 0)
    kinds: collections.Counter[str] = collections.Counter()
    cases = []
    for i in range(3 * task["count"]):
        out = folder / f"{name}-{task['part']}-{task['seed']}-{i}"
        met: list[dict[str, Any]] = []
        is_ended = True
        while is_ended:
            is_last = counts["times"] + len(met) == task["count"]
            make = _none if is_last else _FAULTS[task["part"]]
            fault = make(choose, alone)
            last = run_victim(name, out, fault, folder / "cache")
            is_ended = not is_last and -last.code in _ENDS
            if is_ended:
                met.append({**fault, "code": last.code, "errors": last.errors[-400:]})
        kinds.update(fault["kind"] for fault in met)
        found = _compared(name, out, alone, last)
        counts["times"] += len(met)
        counts["held"] += len(met) * found["ok"]
        counts["other"] += not found["equal"]
        counts["doubled"] += found["doubled"]
        counts["left"] += bool(found["left"])
        if not found["ok"]:
            cases.append({"faults": met, **found})
        if counts["times"] == task["count"]:
            break
    is_ok = counts["held"] == counts["times"] and not cases
    return {**task, **counts, "kinds": dict(kinds), "cases": cases, "ok": is_ok}


def _compared(
    name: str, out: Path, alone: dict[str, Any], again: Run
) -> dict[str, Any]:
    from softcvi_experiments.faults._programs import PROGRAMS

    if again.code != 0:
        why = f"exit status {again.code}: {again.errors[-400:]}"
        return {"ok": False, "equal": False, "doubled": 0, "left": [], "again": why}
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


def _none(choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "none"}


def _kill(choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    """SIGKILL at a random moment, at a call that ends a write, or inside a write."""
    kind = choose.choice(["time", "time", "call", "write"])
    if kind == "time":
        return _sent(signal.SIGKILL, choose, alone)
    if kind == "write":
        return {"kind": kind, "size": _size(choose, alone)}
    return {"kind": kind, **_call(choose, alone)}


def _sent(number: int, choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    after = choose.uniform(0.0, alone["cpu_seconds"])
    return {"kind": "time", "signal": int(number), "after": after}


def _size(choose: random.Random, alone: dict[str, Any]) -> int:
    largest = choose.choice([size for size in alone["files"].values() if size] or [1])
    return choose.choice([0, largest // 2, largest - 1, choose.randrange(largest)])


def _call(choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    made = {name: count for name, count in alone["calls"].items() if count}
    name = choose.choice(sorted(made) or ["fsync"])
    return {"call": name, "at": choose.randint(1, made.get(name, 1))}


def _signal(choose: random.Random, alone: dict[str, Any]) -> dict[str, Any]:
    return _sent(choose.choice([signal.SIGTERM, signal.SIGHUP]), choose, alone)


_FAULTS = {"kills": _kill, "signals": _signal}
