"""A process that runs a program and meets a fault; started by the suite.

What it is told comes as JSON in its argument: ``program``, ``out`` and ``fault``.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Calls at which a process can be ended.
CALLS = ("fsync", "replace", "unlink", "ftruncate")


class _Counted:
    """A function of ``os`` that counts its calls, and does something at one of them."""

    def __init__(self, name: str, at: int, act: Callable[[], None]):
        self.calls, self._at, self._act = 0, at, act
        self._original = getattr(os, name)
        setattr(os, name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self._at:
            self._act()
        return self._original(*args, **kwargs)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _limit_files(size: int) -> None:
    """No file may grow larger; a write beyond ends the process."""
    # Python ignores the signal; by default it ends the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _fast_clock() -> None:
    """A clock that runs fifty times too fast: checkpoints are due all the time."""
    now = time.monotonic
    began = now()
    time.monotonic = lambda: began + 50 * (now() - began)


def main() -> int:
    """Run what the argument asks for; the last line of output is a report."""
    task = json.loads(sys.argv[1])
    fault, out = task["fault"], Path(task["out"])
    from softcvi_experiments.faults._programs import PROGRAMS

    program = PROGRAMS[task["program"]]
    kind = fault["kind"]
    at = fault.get("at", 0)
    counted = {
        name: _Counted(name, at if fault.get("call") == name else 0, _die)
        for name in CALLS
    }
    if kind == "write":
        _limit_files(fault["size"])
    if task["program"] == "fit":
        _fast_clock()
    print("ready", flush=True)
    began = time.process_time()
    code = program.run(out)
    report = {
        "code": code,
        "cpu_seconds": time.process_time() - began,
        "calls": {name: count.calls for name, count in counted.items()},
    }
    print(json.dumps(report), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
