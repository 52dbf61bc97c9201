"""Faults that a process survives: full disks, Ctrl-C, clocks; many in one process."""

import contextlib
import dataclasses
import io
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import softcvi
from softcvi_experiments.faults._programs import PROGRAMS, Program
from softcvi_experiments.faults._runs import contents

# Calls of ``os`` that end a write.
CALLS = ("fsync", "replace", "ftruncate")
_NO_SPACE = 28
_DISK_BYTES = 16 * 2**20
_KEPT_CASES = 5
_CHECKPOINT = softcvi.fitting.Checkpoint("", every=0.0)


class _Ended(NamedTuple):
    """How a run ended: its code, or None and what it raised, and what it said."""

    code: int | None
    said: str


class _Alone(NamedTuple):
    """A run without a fault."""

    answer: dict[str, str]
    files: dict[str, int]
    calls: dict[str, int]
    seconds: float


Fault = Callable[[Path], contextlib.AbstractContextManager[None]]


def _always_due(path: Path, every: float) -> softcvi.fitting.Checkpoint:
    return dataclasses.replace(_CHECKPOINT, path=path)


def survives(task: dict[str, Any]) -> dict[str, Any]:
    """A program that meets faults, each in a folder of its own, and is run again.

    Args:
        task: ``part``, ``case`` (the program), ``seed``, and the ``count`` of faults.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program = PROGRAMS[task["case"]]
    choose = random.Random(f"{task['part']} {task['case']} {task['seed']}")
    cases: list[dict[str, Any]] = []
    counts = dict.fromkeys(("held", "other", "doubled", "left", "silent"), 0)
    with (
        tempfile.TemporaryDirectory(prefix="softcvi-faults-") as scratch,
        # Every look of the host writes a checkpoint.
        mock.patch.object(softcvi.fitting, "Checkpoint", _always_due),
    ):
        alone = _alone(program, Path(scratch) / "alone")
        faults = _FAULTS[task["part"]](choose, alone, task["count"])
        for i, (name, fault) in enumerate(faults):
            out = Path(scratch) / str(i)
            with contextlib.ExitStack() as mounted:
                found = _meet(program, out, name, fault, alone, mounted)
            for key in counts:
                counts[key] += found[key]
            if not found["held"] and len(cases) < _KEPT_CASES:
                cases.append(found)
    times = len(faults)
    is_ok = counts["held"] == times
    return {**task, **counts, "times": times, "cases": cases, "ok": is_ok}


def _alone(program: Program, out: Path) -> _Alone:
    # The first one compiles; the second is timed.
    for folder in (out.with_name("warm"), out):
        counted = {name: mock.Mock(wraps=getattr(os, name)) for name in CALLS}
        began = time.perf_counter()
        with mock.patch.multiple(os, **counted):
            ended = _run(program, folder)
        if ended.code != 0:
            raise RuntimeError(f"fails without a fault: {ended.said}")
    seconds = time.perf_counter() - began
    calls = {name: count.call_count for name, count in counted.items()}
    return _Alone(program.answer(out), contents(out), calls, seconds)


def _run(program: Program, out: Path) -> _Ended:
    said = io.StringIO()
    out.mkdir(exist_ok=True)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = program.run(out)
        return _Ended(code, said.getvalue()[-300:])
    except (Exception, KeyboardInterrupt) as error:
        return _Ended(None, f"{type(error).__name__}: {error}"[-300:])


def _meet(
    program: Program,
    out: Path,
    name: str,
    fault: Fault,
    alone: _Alone,
    mounted: contextlib.ExitStack,
) -> dict[str, Any]:
    if name.startswith("room"):
        mounted.enter_context(_small_disk(out))
    with fault(out):
        first = _run(program, out)
    again = _run(program, out)
    if again.code != 0:  # Ctrl-C leaves a folder that the next call may have to clear
        again = _run(program, out)
    try:
        answer = program.answer(out) if again.code == 0 else {}
    except (OSError, ValueError, LookupError) as error:
        answer, again = {}, _Ended(None, str(error))
    left = sorted(set(contents(out)) ^ set(alone.files))
    is_equal = answer == alone.answer
    is_disk = name.startswith(("call", "size", "room"))
    is_silent = is_disk and first.code != 0 and out.name not in first.said
    return {
        "fault": name,
        "first": [first.code, first.said],
        "again": [again.code, again.said],
        "differing": left,
        "held": is_equal and not left and not is_silent,
        "other": not is_equal,
        "doubled": sum(entry.endswith(", again") for entry in answer),
        "left": bool(left),
        "silent": is_silent,
    }


@contextlib.contextmanager
def _call_fails(call: str, at: int, out: Path) -> Iterator[None]:
    """No space left at one call."""
    original, calls = getattr(os, call), []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(call)
        if len(calls) == at:
            raise OSError(_NO_SPACE, "No space left on device")
        return original(*args, **kwargs)

    with mock.patch.object(os, call, counted):
        yield


@contextlib.contextmanager
def _limited_size(size: int, out: Path) -> Iterator[None]:
    """No file may grow larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def _small_disk(out: Path) -> Iterator[None]:
    out.mkdir()
    size = f"size={_DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", out], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", out], check=True)


@contextlib.contextmanager
def _little_room(room: int, out: Path) -> Iterator[None]:
    """A file of another program fills the disk but for so many bytes."""
    other = out / "other"
    free = shutil.disk_usage(out).free
    other.write_bytes(bytes(max(free - room, 0)))
    try:
        yield
    finally:
        other.unlink()


@contextlib.contextmanager
def _ctrl_c(after: float, out: Path) -> Iterator[None]:
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:  # the program had just ended
        timer.join()


@contextlib.contextmanager
def _jumping_clock(seed: int, out: Path) -> Iterator[None]:
    """The time of day, which somebody sets forward and back."""
    choose, now, shift = random.Random(seed), time.time, [0.0]

    def jumping() -> float:
        if choose.random() < 0.2:
            shift[0] = choose.choice([-1e8, -86400.0, 0.0, 3600.0, 86400.0, 1e8])
        return now() + shift[0]

    with mock.patch.object(time, "time", jumping):
        yield


Named = list[tuple[str, Fault]]


def _full_disk(choose: random.Random, alone: _Alone, count: int) -> Named:
    """At each call that ends a write, at the size of each file, and on small disks."""
    found: Named = []
    for call, number in alone.calls.items():
        for at in range(1, number + 1):
            found.append((f"call {call} {at}", _bound(_call_fails, call, at)))
    sizes = {s - 1 for s in alone.files.values()} | {
        s // 2 for s in alone.files.values()
    }
    for size in sorted(size for size in sizes if size >= 0):
        found.append((f"size {size}", _bound(_limited_size, size)))
    if os.getuid() == 0 and shutil.which("mount"):
        total = sum(alone.files.values())
        for share in (0.0, 0.25, 0.5, 0.75):
            room = int(share * total)
            found.append((f"room {room}", _bound(_little_room, room)))
    return found if count >= len(found) else choose.sample(found, count)


def _interrupts(choose: random.Random, alone: _Alone, count: int) -> Named:
    moments = [choose.uniform(0.0, alone.seconds) for _ in range(count)]
    return [(f"ctrl-c {moment:.2f}", _bound(_ctrl_c, moment)) for moment in moments]


def _clocks(choose: random.Random, alone: _Alone, count: int) -> Named:
    seeds = [choose.randrange(1000) for _ in range(count)]
    return [(f"clock {seed}", _bound(_jumping_clock, seed)) for seed in seeds]


def _bound(make: Callable[..., Any], *values: Any) -> Fault:
    return lambda out: make(*values, out)


_FAULTS: dict[str, Callable[[random.Random, _Alone, int], Named]] = {
    "disk": _full_disk, "ctrl-c": _interrupts, "clock": _clocks,
}  # fmt: skip
