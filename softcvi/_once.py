"""Files that name a value twice: the first would be lost in silence."""

from collections.abc import Iterable
from typing import Any


def named_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by name; for ``json.loads`` as ``object_pairs_hook``.

    Args:
        pairs: Names and values.

    Example:
        >>> named_once([("y", 1), ("y", 2)])
        Traceback (most recent call last):
            ...
        ValueError: 'y' is there twice
    """
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{name!r:.50} is there twice")
        values[name] = value
    return values
