"""Damaged files of every kind, read under limits of memory and time."""

import collections
import contextlib
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softcvi_experiments.faults._formats import FORMATS, Format
from softcvi_experiments.faults._mutate import mutated

OUTCOMES = ("loaded", "named", "raw", "memory", "time", "executed")
_SECONDS = 20.0
# What reading a file of some kilobytes may take beside what the process has.
_ROOM = 2 * 2**30
_GROWTH = 512 * 2**20
_KEPT_CASES = 20


class _Late(BaseException):
    """Reading took too long; no reader may catch it."""


def read_damaged(task: dict[str, Any]) -> dict[str, Any]:
    """Read damaged copies of one kind of file; returns how often what happened.

    Args:
        task: ``format``, the first ``seed`` and the ``count`` of copies.
    """
    form = FORMATS[task["format"]]
    counts: collections.Counter = collections.Counter()
    cases: list[dict[str, Any]] = []
    folder = Path(tempfile.mkdtemp(prefix="softcvi-faults-"))
    try:
        canary = folder / "canary"
        form.make(folder)
        path = _file(folder, form)
        good = path.read_bytes()
        began = time.monotonic()
        for seed in range(task["seed"], task["seed"] + task["count"]):
            content = mutated(seed, good, str(canary))
            _only(folder, path, content)
            with _limited_memory():
                outcome, words = _read(form, folder, path)
            if canary.exists():
                outcome = "executed"
                canary.unlink()
            counts[outcome] += 1
            if outcome not in ("loaded", "named") and len(cases) < _KEPT_CASES:
                cases.append({"seed": seed, "outcome": outcome, "message": words})
        seconds = time.monotonic() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = {name: counts[name] for name in OUTCOMES}
    bad = sum(counts[name] for name in OUTCOMES if name not in ("loaded", "named"))
    rest = {"cases": cases, "seconds": round(seconds, 1)}
    return {**task, **found, **rest, "ok": bad == 0}


def _file(folder: Path, form: Format) -> Path:
    path = folder / form.file
    return next(path.iterdir()) if path.is_dir() else path


def _only(folder: Path, path: Path, content: bytes) -> None:
    """The damaged file, and nothing that reading the last one left."""
    path.unlink(missing_ok=True)
    for left in folder.glob("*.lock"):
        left.unlink()
    path.write_bytes(content)


def _read(form: Format, folder: Path, path: Path) -> tuple[str, str]:
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        form.read(folder)
        outcome, words = "loaded", ""
    except _Late:
        outcome, words = "time", ""
    except MemoryError as error:
        outcome, words = "memory", str(error)
    except Exception as error:
        words = str(error)
        outcome = "named" if _is_named(words, path) else "raw"
        words = f"{type(error).__name__}: {words}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown * 1024 > _GROWTH:
        outcome, words = "memory", f"{grown / 1024:.0f} MB; {words}"
    return outcome, words


def _is_named(words: str, path: Path) -> bool:
    """Whether a message says which file, and after the reason what to do about it."""
    is_short = len(words.splitlines()) <= 4 and "Traceback" not in words
    names = path.name in words or str(path.parent) in words
    text = " ".join(words.split())
    has_remedy = ". " in text or "; " in text
    return is_short and names and has_remedy and "--traceback" not in text


def _late(*_: object) -> None:
    raise _Late


@contextlib.contextmanager
def _limited_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData"):
            used = 1024 * int(line.split()[1])
    resource.setrlimit(resource.RLIMIT_DATA, (used + _ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
