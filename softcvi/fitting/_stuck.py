"""Calls of a model that take longer than a whole fit may take.

The start and the verdict wait for compiled programs, and see no clock meanwhile. A
model that is called back, on the same thread or on one of XLA's, is ended by an
exception if it is stuck, and the program fails.
"""

import signal
import sys
import threading
import time
from types import FrameType

from softcvi.fitting._abandoned import raise_in, threads_of_xla
from softcvi.fitting._interrupt import CallbackFailure

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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        if self._watch is not None:
            self._watch.join()
        if kind is KeyboardInterrupt and self.has_ended_one:
            raise CallbackFailure(str(CallTooLong()))

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
                    _end_call(ident)
                    calls[ident] = call, now  # it may take a moment to end
            began = calls


def _end_call(ident: int) -> None:
    is_main = ident == threading.main_thread().ident
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Which also ends what waits outside of Python, such as a long sleep.
        signal.pthread_kill(ident, signal.SIGINT)
    else:
        raise_in(ident, CallTooLong)


def _callback(frame: FrameType | None) -> FrameType | None:
    """The outermost frame in which JAX calls a function back; None if there is none."""
    found = None
    while frame is not None:
        if frame.f_globals.get("__name__") == _CALLBACKS:
            found = frame
        frame = frame.f_back
    return found
