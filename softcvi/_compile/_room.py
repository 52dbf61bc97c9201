"""Room for compiled programs: the system bounds how many a process can hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

_MAPPINGS = Path("/proc/self/maps")
_MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")
_HELD: list[Callable[[], Any]] = []


def held(compiled: Callable[[], Any]) -> Callable[[], Any]:
    """Remember a function whose programs can be given up, since it can make them again.

    Args:
        compiled: Returns what ``eqx.filter_jit`` has made.

    Example:
        >>> import equinox as eqx
        >>> program = eqx.filter_jit(lambda x: x + 1)
        >>> held(lambda: program)()(1)
        2
    """
    _HELD.append(compiled)
    return compiled


def make_room(share: float = 0.5) -> bool:
    """Give up this package's compiled programs where the process can hold few more.

    Each program takes some mappings of memory. Linux allows a process 65,530 of them,
    and XLA ends the process when there are none left: after some 80 fits of different
    models. JAX's own caches and the user's programs stay.

    Args:
        share: Share of the mappings that may be taken before programs are given up.

    Returns:
        Whether programs were given up.

    Example:
        >>> make_room()
        False
    """
    try:
        most = int(_MOST_MAPPINGS.read_text())
        with _MAPPINGS.open("rb") as lines:
            taken = sum(1 for _ in lines)
    except (OSError, ValueError):  # other systems have no such bound
        return False
    if taken < share * most:
        return False
    for compiled in _HELD:
        # Equinox keeps the function that JAX compiled in this field.
        compiled()._cached.clear_cache()
    return True
