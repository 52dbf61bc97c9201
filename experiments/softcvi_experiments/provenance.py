"""Where a number is from: versions, commit, machine, command and date."""

import datetime
import functools
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax

import softcvi

_PACKAGES = (
    "jax", "jaxlib", "equinox", "flowjax", "optax", "numpy", "numpyro", "blackjax",
    "pymc", "pytensor",
)  # fmt: skip


@functools.cache
def provenance() -> dict[str, Any]:
    """What every record carries under ``made``.

    Example:
        >>> sorted(provenance())
        ['command', 'commit', 'cores', 'date', 'device', 'jax', 'processor', 'softcvi']
    """
    return {
        "softcvi": softcvi.__version__,
        "jax": jax.__version__,
        "commit": commit(),
        "processor": _processor(),
        "cores": _cores(),
        "device": _device(),
        "command": command(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def describe_machine() -> dict[str, Any]:
    """Processor, accelerator, versions and how busy the machine was.

    Example:
        >>> sorted(describe_machine())[:3]
        ['commit', 'cores', 'date']
    """
    return {
        "processor": _processor(),
        "cores": _cores(),
        "memory_gib": _memory_gib(),
        "device": _device(),
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"softcvi": softcvi.__version__, **_versions()},
        "commit": commit(),
        "load_before": _load(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the checkout, with ``+`` for changed files; None outside one.

    A copy without Git may name its commit by ``SOFTCVI_COMMIT``.

    Example:
        >>> commit() is None or len(commit()) >= 7
        True
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


def command() -> str:
    """The command line of this process, without the folder of the program.

    Example:
        >>> bool(command())
        True
    """
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


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):  # not on every system
        return None


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


def _memory_gib() -> float | None:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    return round(pages * size / 2**30, 1)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
