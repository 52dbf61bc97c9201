"""Ctrl-C during a compiled loop: noticed between chunks, and never lost."""

import signal
import threading
from types import FrameType


class Interruptible:
    """Remember Ctrl-C instead of raising wherever Python happens to be.

    An exception raised inside another library's callback or finaliser would be
    swallowed there. A second Ctrl-C raises at once. Outside the main thread, and where
    the program has its own handler, signals are left alone.

    Example:
        >>> with Interruptible() as interruptible:
        ...     interruptible.check()  # raises KeyboardInterrupt after Ctrl-C
    """

    def __init__(self):
        self._asked = False
        self._installed = False

    def __enter__(self) -> "Interruptible":
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._remember)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _remember(self, signum: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt
