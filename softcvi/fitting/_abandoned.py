"""Calls of a model that nobody waits for any more, until the interpreter ends.

A thread that comes back to Python while the interpreter ends aborts it. XLA calls a
model back on threads of its own, which Python can neither join nor make daemons.
"""

import atexit
import logging
import threading
import time

from softcvi.fitting._stuck import raise_in, threads_of_xla

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
