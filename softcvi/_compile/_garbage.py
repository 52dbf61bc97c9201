"""Python's search for garbage, out of the way while programs are traced."""

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from softcvi._compile._switch import is_plain

P = ParamSpec("P")
R = TypeVar("R")

# Objects made between two searches; Python's own number is 700, and tracing makes
# millions that are no garbage.
_OBJECTS = 50_000
_LOCK = threading.Lock()


class _Calls:
    """Calls that are under way, in all threads, and what held before the first."""

    number = 0
    before: tuple[int, int, int] = (0, 0, 0)


def collected_rarely(function: Callable[P, R]) -> Callable[P, R]:
    """Look for garbage less often during a call; afterwards as before.

    Whoever has turned the search off, or has made it rarer, is left alone.

    Example:
        >>> collected_rarely(lambda x: x + 1)(1)
        2
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if is_plain():
            return function(*args, **options)
        with _rarely():
            return function(*args, **options)

    return call


@contextlib.contextmanager
def _rarely() -> Iterator[None]:
    with _LOCK:
        if _Calls.number == 0:
            _Calls.before = gc.get_threshold()
            if 0 < _Calls.before[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_Calls.before[1:])
        _Calls.number += 1
    try:
        yield
    finally:
        with _LOCK:
            _Calls.number -= 1
            if _Calls.number == 0 and gc.get_threshold()[0] == _OBJECTS:
                gc.set_threshold(*_Calls.before)
