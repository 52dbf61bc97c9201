"""Optional packages: imported where they are used, with a remedy if absent."""

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    Args:
        module: Name to import.
        extra: The extra of softcvi that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{module} is not installed and is needed here: pip install "
            f"'softcvi[{extra}]' ({error}).",
            name=error.name,
        ) from error
