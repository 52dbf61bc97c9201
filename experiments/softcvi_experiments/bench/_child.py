"""Measurements that need a process of their own: cold starts and peak memory."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from softcvi_experiments import children

_WORKER = Path(__file__).with_name("_worker.py")


def run_child(what: str, *args: Any, cache: Path | None = None) -> dict[str, Any]:
    """Run a measurement of ``_worker`` in a fresh interpreter.

    Args:
        what: Its name.
        *args: Its arguments, passed as text.
        cache: Folder of the persistent compilation cache; none if None.

    Example:
        >>> run_child("nothing")["what"]
        'nothing'
    """
    env = children.environment(cache=cache)
    return children.run_child(_WORKER, what, *args, env=env)


def run_code(code: str) -> float:
    """Seconds that a fresh interpreter needs for a piece of code, as it says itself.

    Args:
        code: Statements; the interpreter's own start is not counted.

    Example:
        >>> run_code("import json") < 5.0
        True
    """
    text = f"import time; t = time.perf_counter(); {code}; "
    text += "print(time.perf_counter() - t)"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env=children.environment(),
    )
    return float(done.stdout)
