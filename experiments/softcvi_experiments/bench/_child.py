"""Measurements that need a process of their own: cold starts and peak memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]


class ChildError(RuntimeError):
    """A child process failed; the message is the end of what it said."""


def run_child(
    what: str,
    *args: Any,
    cache: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 1800.0,
) -> dict[str, Any]:
    """Measure something in a fresh interpreter.

    Args:
        what: Name of a measurement of ``_worker``.
        *args: Its arguments, passed as text.
        cache: Folder of the persistent compilation cache; none if None.
        env: Further environment variables.
        timeout: Seconds to wait at most.

    Returns:
        What the child reported, with ``seconds_wall`` from its start to its report,
        less the ``seconds_setup`` that it says belong to the benchmark.

    Example:
        >>> run_child("nothing")["what"]
        'nothing'
    """
    # By path, since ``-m`` would import this package before the watch is looked at.
    command = [sys.executable, str(Path(__file__).with_name("_worker.py")), what]
    began = time.perf_counter()
    child = subprocess.Popen(
        [*command, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(cache, env),
    )
    try:
        # The report is one line; what comes after it (tearing down) does not count.
        line = child.stdout.readline() if child.stdout else ""
        wall = time.perf_counter() - began
        _, errors = child.communicate(timeout=timeout)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if child.returncode != 0 or not line.strip():
        last = [text for text in errors.splitlines() if text.strip()][-1:]
        raise ChildError(f"{what} {' '.join(map(str, args))}: {' '.join(last)}")
    report = json.loads(line)
    return {**report, "seconds_wall": wall - report.get("seconds_setup", 0.0)}


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
        env=_environment(None, None),
    )
    return float(done.stdout)


def _environment(cache: Path | None, more: dict[str, str] | None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")}
    path = env.get("PYTHONPATH", "")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), path]))
    # Installed packages come with their bytecode: let this one keep its own, too.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["TF_CPP_MIN_LOG_LEVEL"] = "3"
    env["PYTHONWARNINGS"] = "ignore"
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if cache is None:
        env["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    else:
        env["JAX_ENABLE_COMPILATION_CACHE"] = "true"
        env["SOFTCVI_CACHE_DIR"] = str(cache)
    return {**env, **(more or {})}
