"""The machine on which something was timed."""

import importlib.metadata
import os
import platform
from typing import Any

import jax

from softcvi.sweeps import provenance

_PACKAGES = (
    "softcvi", "jax", "jaxlib", "equinox", "flowjax", "optax", "numpy", "numpyro",
    "blackjax", "pymc", "pytensor",
)  # fmt: skip


def describe_machine() -> dict[str, Any]:
    """Processor, accelerator, versions and how busy the machine was.

    Example:
        >>> sorted(describe_machine())[:3]
        ['commit', 'cores', 'date']
    """
    made = provenance()
    return {
        **{name: made[name] for name in ("processor", "cores", "device", "commit")},
        "memory_gib": _memory_gib(),
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {**_versions(), "softcvi": made["softcvi"]},
        "load_before": _load(),
        "date": made["date"][:10],
    }


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):  # not on every system
        return None


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
