"""What a benchmark ran on."""

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

import jax

_PACKAGES = (
    "softcvi", "jax", "jaxlib", "equinox", "flowjax", "optax", "numpy", "numpyro",
    "blackjax", "pymc", "pytensor",
)  # fmt: skip


def describe_machine() -> dict:
    """Processor, accelerator, versions and how busy the machine was.

    Example:
        >>> sorted(describe_machine())[:3]
        ['cores', 'date', 'device']
    """
    device = jax.devices()[0]
    names = dict.fromkeys([device.platform, device.device_kind])
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "device": " ".join(names),
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(),
        "load_before": round(os.getloadavg()[0], 2)
        if hasattr(os, "getloadavg")
        else None,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


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
