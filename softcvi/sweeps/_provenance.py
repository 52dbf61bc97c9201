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


def _commit(folder: Path = Path(__file__).parent) -> str | None:
    """The commit of the checkout, with ``+`` for changed files; None outside one.

    A copy without Git may name its commit by ``SOFTCVI_COMMIT``. Nothing is written:
    ``git describe --dirty`` locks the repository, and leaves it locked if it is killed
    or the disk is full.
    """
    named = os.environ.get("SOFTCVI_COMMIT")
    if named:
        return named
    words = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch"]
    try:
        done = subprocess.run(
            [*words, "--untracked-files=no"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    mark = "# branch.oid "
    lines = done.stdout.splitlines()
    names = [line[len(mark) :] for line in lines if line.startswith(mark)]
    if done.returncode != 0 or not names or not names[0].isalnum():
        return None
    is_dirty = any(not line.startswith("#") for line in lines)
    return names[0][:10] + "+" * is_dirty


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
