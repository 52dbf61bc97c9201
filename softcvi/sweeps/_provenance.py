"""Where a number is from: versions, commit, machine, command and date."""

import datetime
import functools
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax


@functools.cache
def provenance() -> dict[str, Any]:
    """What every record carries under ``made``.

    Example:
        >>> from softcvi.sweeps import provenance
        >>> sorted(provenance())
        ['command', 'commit', 'cores', 'date', 'device', 'jax', 'processor', 'softcvi']
    """
    import softcvi

    return {
        "softcvi": softcvi.__version__,
        "jax": jax.__version__,
        "commit": _commit(),
        "processor": _processor(),
        "cores": _cores(),
        "device": _device(),
        "command": _command(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """The commit of the checkout, with ``+`` for changed files; None outside one.

    A copy without Git may name its commit by ``SOFTCVI_COMMIT``.
    """
    named = os.environ.get("SOFTCVI_COMMIT")
    if named:
        return named
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=10"]
    try:
        done = subprocess.run(
            words,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _command() -> str:
    """The command line of this process, without the folder of the program."""
    program, *args = sys.argv or [""]
    path = Path(program)
    if path.name == "__main__.py":
        # Run by ``-m``: the package is named rather than its file.
        name = f"python -m {path.parent.parent.name}.{path.parent.name}"
    else:
        name = path.name
    return " ".join([name, *map(shlex.quote, args)])


def _cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count()


def _device() -> str:
    device = jax.devices()[0]
    return " ".join(dict.fromkeys([device.platform, device.device_kind]))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
