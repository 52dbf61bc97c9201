"""What ends a compiled loop early: Ctrl-C, time limits, and errors of the model."""

import contextlib
import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import jax

from softcvi._compile import enable_x64
from softcvi.fitting._abandoned import end_at_exit

if TYPE_CHECKING:
    from softcvi.fitting._result import FitResult

T = TypeVar("T")
_POLL_SECONDS = 0.05
# A chunk takes a quarter of a second; one that takes much longer is stuck.
_GRACE_SECONDS = 1.0


class Abandoned(Exception):
    """A call that did not come back in time; its result is lost."""


class Interruptible:
    """Remember Ctrl-C instead of raising wherever Python happens to be.

    An exception raised inside another library's callback or finaliser would be
    swallowed there. After a second one nothing is waited for. Outside the main thread,
    and where the program has its own handler, signals are left alone.

    Example:
        >>> with Interruptible() as interruptible:
        ...     interruptible.check()  # raises KeyboardInterrupt after Ctrl-C
    """

    def __init__(self):
        self.presses = 0
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
        self.presses += 1
        # Usually `check` is called; this ends code that never calls it.
        if self.presses > 2:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if Ctrl-C was pressed."""
        if self.presses:
            raise KeyboardInterrupt


class Patience:
    """How long to go on waiting once there is a reason to stop.

    Args:
        reason: Asked every moment: why to stop waiting, or None.
        seconds: How long to wait nevertheless: the work may be about to end.
    """

    def __init__(self, reason: Callable[[], str | None], seconds: float = 0.0):
        self._reason = reason
        self._seconds = max(seconds, _GRACE_SECONDS)
        self._since: float | None = None

    def check(self) -> None:
        """Raise ``Abandoned`` if the reason has held for too long."""
        reason = self._reason()
        if reason is None:
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > self._seconds:
            raise Abandoned(reason)


def wait_for(
    work: Callable[[], T],
    patience: Patience,
    meanwhile: Callable[[], None] = lambda: None,
) -> T:
    """Do work on another thread, and stop waiting when patience ends.

    A compiled program with callbacks runs on the thread that calls it, and no signal is
    handled there before it ends. The abandoned thread ends with the process.

    Args:
        work: What to do, in the caller's precision and on the caller's device.
        patience: Asked while waiting.
        meanwhile: What to do on this thread before waiting.

    Example:
        >>> wait_for(lambda: 1 + 1, Patience(lambda: None))
        2
    """
    answers: list[tuple[Any, BaseException | None]] = []
    settings = _thread_settings()
    # Not a queue: a signal in the last moment of ``SimpleQueue.get(timeout=...)`` makes
    # it wait without end (CPython 3.11).
    is_done = threading.Event()

    def do() -> None:
        try:
            with contextlib.ExitStack() as stack:
                for setting in settings:
                    stack.enter_context(setting())
                answers.append((work(), None))
        except BaseException as error:
            answers.append((None, error))
        finally:
            is_done.set()

    thread = threading.Thread(target=do, daemon=True, name="softcvi-fit")
    thread.start()
    try:
        meanwhile()
        while not is_done.wait(_POLL_SECONDS):
            patience.check()
    except BaseException:
        end_at_exit(thread)
        raise
    answer, error = answers[0]
    if error is not None:
        raise error
    return answer


def _thread_settings() -> list[Callable[[], contextlib.AbstractContextManager]]:
    """Settings of JAX that hold for one thread, as they are in this one."""
    double, device = jax.config.jax_enable_x64, jax.config.jax_default_device
    precision = jax.config.jax_default_matmul_precision
    return [
        lambda: enable_x64(double),
        lambda: jax.default_device(device),
        lambda: jax.default_matmul_precision(precision),
    ]


def interrupted(result: "FitResult", when: str) -> "FitResult":
    """The result so far of a fit that Ctrl-C has ended.

    Args:
        result: That result.
        when: What it was about to do, for people.
    """
    message = f"{result.message}; interrupted {when}"
    return dataclasses.replace(result, status="interrupted", message=message)


class CallbackFailure(RuntimeError):
    """A function called back from inside a compiled program raised."""


@contextlib.contextmanager
def callback_failures() -> Iterator[None]:
    """Tell what a model raised when it was called back from other errors.

    Raises:
        CallbackFailure: For what the model raised; other errors pass as they are.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "callback" not in str(error).lower():
            raise
        raise _failure(error) from error
    except ValueError as error:
        # What a callback raises on the calling thread arrives as a ValueError.
        if "CpuCallback" not in str(error):
            raise
        raise _failure(error) from error


def _failure(error: Exception) -> BaseException:
    """Ctrl-C is no failure of the model that happened to be called back."""
    if first_line(error).partition(":")[0] == "KeyboardInterrupt":
        return KeyboardInterrupt()
    return CallbackFailure(str(error))


def first_line(error: Exception) -> str:
    r"""The line of an error that says most: that of the exception in the model.

    Args:
        error: What a compiled program raised.

    Example:
        >>> first_line(RuntimeError("INTERNAL: callback: Traceback\nKeyError: 'a'"))
        "KeyError: 'a'"
    """
    _, traceback, frames = str(error).rpartition("Traceback")
    # Frames are indented; what was raised, of whatever name, comes after them.
    for line in frames.splitlines()[1:] if traceback else ():
        if line.strip() and not line[0].isspace():
            return line.strip()
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        if "Error" in line or "Exception" in line:
            return line
    return lines[0] if lines else type(error).__name__
