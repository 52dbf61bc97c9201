"""One process per accelerator: JAX would give each of them to every process."""

import importlib.util
import os
import pkgutil
from pathlib import Path
from typing import Any

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_DRIVER = Path("/dev")


def accelerators() -> list[str]:
    """Accelerators of this machine that JAX would use, without starting it.

    Example:
        >>> isinstance(accelerators(), list)
        True
    """
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms and not {"cuda", "gpu"} & set(platforms.split(",")):
        return []
    if not _has_plugin():
        return []
    if _VISIBLE in os.environ:
        return [name for name in os.environ[_VISIBLE].split(",") if name.strip()]
    paths = _DRIVER.glob("nvidia[0-9]*")
    numbers = (path.name.removeprefix("nvidia") for path in paths)
    return sorted((n for n in numbers if n.isdigit()), key=int)


def use_next(devices: Any) -> None:
    """Let this process see one device alone; before it computes for the first time.

    Args:
        devices: A queue of names of devices.
    """
    os.environ[_VISIBLE] = devices.get()


def use_own(devices: list[str], worker: int) -> None:
    """Let this process see the device of its number.

    Args:
        devices: Names of all devices.
        worker: Number of the process.
    """
    os.environ[_VISIBLE] = devices[worker % len(devices)]


def _has_plugin() -> bool:
    """Whether JAX is installed for these accelerators."""
    found = importlib.util.find_spec("jax_plugins")
    if found is None or not found.submodule_search_locations:
        return False
    modules = pkgutil.iter_modules(found.submodule_search_locations)
    return any("cuda" in module.name for module in modules)
