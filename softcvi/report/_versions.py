"""What a fit ran on, so that it can be repeated."""

import importlib.metadata
import platform

import jax

_PACKAGES = ("softcvi", "jax", "jaxlib", "equinox", "flowjax", "optax", "numpy")


def versions() -> dict[str, str]:
    """Versions of what decides the numbers, and the device."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    device = jax.devices()[0]
    names = dict.fromkeys((device.platform, device.device_kind))
    found["device"] = " ".join(name for name in names if name)
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["float64"] = "yes" if jax.config.jax_enable_x64 else "no"
    return found
