"""Calls of a model that take longer than a whole fit may take.

The start and the verdict wait for compiled programs, and see no clock meanwhile. A
model that is called back, on the same thread or on one of XLA's, is ended by an
exception if it is stuck, and the program fails.
"""

import ctypes
import sys
import threading
import time
from types import FrameType

# A call that takes less than this is never ended.
_LEAST_SECONDS = 30.0
_LOOKS = 20
_CALLBACKS = "jax._src.callback"


class CallTooLong(BaseException):
    """Raised inside a model's call; Python makes it from the class alone."""

    def __str__(self) -> str:
        return "one call of the model took longer than the whole fit may take"


class CallsLimited:
    """End every call of a model that takes longer than this, in a ``with`` block.

    Args:
        seconds: What a whole fit may take; None for any time.

    Attributes:
        has_ended_one: Whether a call had to be ended.

    Example:
        >>> with CallsLimited(60.0) as calls:
        ...     total = 1 + 1
        >>> calls.has_ended_one
        False
    """

    def __init__(self, seconds: float | None):
        self.has_ended_one = False
        self._limit = None if seconds is None else max(seconds, _LEAST_SECONDS)
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    def __enter__(self) -> "CallsLimited":
        if self._limit is not None:
            arguments = threading.get_ident(), self._limit
            self._watch = threading.Thread(
                target=self._look, args=arguments, daemon=True
            )
            self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._watch is not None:
            self._watch.join()

    def _look(self, own: int, limit: float) -> None:
        """Look at one thread and at those of XLA until it is over."""
        began: dict[int, tuple[FrameType, float]] = {}
        while not self._over.wait(limit / _LOOKS):
            calls, now = {}, time.monotonic()
            frames = threads_of_xla() | {own: sys._current_frames()[own]}
            for ident, frame in frames.items():
                call, before = _callback(frame), began.get(ident)
                if call is None:
                    continue
                # Frames are kept, so that the next call cannot have the same one.
                is_same = before is not None and before[0] is call
                calls[ident] = before if before is not None and is_same else (call, now)
                if now - calls[ident][1] > limit:
                    self.has_ended_one = True
                    raise_in(ident, CallTooLong)
            began = calls


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


def _callback(frame: FrameType | None) -> FrameType | None:
    """The outermost frame in which JAX calls a function back; None if there is none."""
    found = None
    while frame is not None:
        if frame.f_globals.get("__name__") == _CALLBACKS:
            found = frame
        frame = frame.f_back
    return found
