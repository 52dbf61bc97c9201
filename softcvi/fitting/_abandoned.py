"""Calls of a model that nobody waits for any more, until the interpreter ends.

A thread that comes back to Python while the interpreter ends aborts it. XLA calls a
model back on threads of its own, which Python can neither join nor make daemons.
"""

import atexit
import ctypes
import logging
import sys
import threading
import time
from types import FrameType

# How long the interpreter waits at its end.
_SECONDS = 2.0
_POLL_SECONDS = 0.05


def end_at_exit(thread: threading.Thread) -> None:
    """See to it that a thread's call is over before the interpreter ends.

    A call that does not come back to Python, such as a long sleep, is waited for a
    moment only: it cannot do harm.

    Args:
        thread: A daemon that waits for a compiled program, and this for a model.

    Example:
        >>> end_at_exit(threading.Thread())
    """
    atexit.register(_end, thread)


def raise_in(ident: int, kind: type[BaseException]) -> None:
    """Raise an exception in a thread where it next comes to a line of Python.

    Args:
        ident: The thread's number.
        kind: What to raise.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(ident), ctypes.py_object(kind)
    )


def threads_of_xla() -> dict[int, FrameType]:
    """Innermost frames of the threads in Python that Python has not begun."""
    known = {thread.ident for thread in threading.enumerate()}
    frames = sys._current_frames()
    return {ident: frames[ident] for ident in frames if ident not in known}


def _end(thread: threading.Thread) -> None:
    until = time.monotonic() + _SECONDS
    # What ends a callback is no failure that its library should tell of.
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    while thread.is_alive() and time.monotonic() < until:
        for ident in {*threads_of_xla(), thread.ident}:
            if ident is not None:
                raise_in(ident, SystemExit)
        thread.join(_POLL_SECONDS)
    logging.disable(before)
