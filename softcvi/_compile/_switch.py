"""The one switch that turns all workarounds off."""

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Iterator

import equinox as eqx

_PLAIN: contextvars.ContextVar[bool] = contextvars.ContextVar("plain", default=False)


def is_plain() -> bool:
    """Whether workarounds are off: asked at each call, or while a program is traced."""
    return _PLAIN.get() or os.environ.get("SOFTCVI_PLAIN_COMPILE") == "1"


@contextlib.contextmanager
def plain_compilation() -> Iterator[None]:
    """Turn all workarounds off for the calls inside.

    Example:
        >>> with plain_compilation():
        ...     is_plain()
        True
    """
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)


def plain_twin(function: Callable) -> Callable:
    """The same function under another identity, compiled without any options.

    Programs are cached by the function: it must not find those with workarounds.
    """

    @functools.wraps(function)
    def plain(*args):
        return function(*args)

    return eqx.filter_jit(plain)
