"""Code of a model file while it runs: a note, a limit, and errors for what ends it."""

import _thread
import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from softcvi.cli._errors import FAILURE, CommandError, in_file
from softcvi.cli._terminal import tell

READING_SECONDS = 600.0
_NOTE_SECONDS = 10.0
_GRACE_SECONDS = 2.0
_LONGEST = 1e8
# What faulthandler raises if standard error is closed, or no file.
_NO_FILE = (OSError, AttributeError, RuntimeError)
# `os.abort` and signals end with a code and are told by the shell; these are silent.
# The others of their kind call them, and `os` has them from a module of its own.
_SILENT_ENDS = ("_exit", "execv", "execve")
_HOLDERS = [sys.modules[name] for name in ("os", os.name) if name in sys.modules]
_end_process = os._exit


class ProcessEnd(SystemExit):
    """What ``os._exit`` raises while a command runs."""


def keep_exit_code() -> None:
    """Let what would end this process in silence raise, until it ends by itself.

    For the end of a command: what a model has registered by ``atexit`` would otherwise
    replace the exit code, and keep temporary files from being removed.

    Example:
        >>> keep_exit_code()  # doctest: +SKIP
    """
    for holder in _HOLDERS:
        for name in _SILENT_ENDS:
            setattr(holder, name, _refusal(name, getattr(os, name)))


def _refusal(name: str, end: Callable[..., Any]) -> Callable[..., Any]:
    owner = os.getpid()

    def refuse(*args: Any, **named: Any) -> None:
        if os.getpid() != owner:  # a forked child ends as it always does
            end(*args, **named)
        listed = ", ".join(map(repr, args[:1]))
        raise ProcessEnd(f"os.{name}({listed})")

    return refuse


@contextlib.contextmanager
def no_silent_end() -> Iterator[None]:
    """Let ``os._exit`` raise, and let crashes of compiled code name where they were.

    A model that calls it would end the command with the exit code of success, without
    an answer and without a word; so would one that becomes another program
    (``os.execv``). Forked children end as they always do.

    Example:
        >>> import os
        >>> with no_silent_end():
        ...     try:
        ...         os._exit(0)
        ...     except SystemExit as stop:
        ...         print(stop)
        os._exit(0)
    """
    before = [(h, name, getattr(h, name)) for h in _HOLDERS for name in _SILENT_ENDS]
    had_handler = faulthandler.is_enabled()
    if not had_handler:
        with contextlib.suppress(*_NO_FILE):
            faulthandler.enable(sys.stderr)
    keep_exit_code()
    try:
        yield
    finally:
        for holder, name, end in before:
            setattr(holder, name, end)
        if not had_handler:
            faulthandler.disable()


@contextlib.contextmanager
def same_folder() -> Iterator[None]:
    """Come back from the folder that code changes to.

    Files that were named relative to the current folder would be read and written
    elsewhere, beside those of another fit.

    Example:
        >>> import os
        >>> here = os.getcwd()
        >>> with same_folder():
        ...     os.chdir("/")
        >>> os.getcwd() == here
        True
    """
    here = os.getcwd()
    try:
        yield
    finally:
        os.chdir(here)


@contextlib.contextmanager
def limited(path: Path, seconds: float = READING_SECONDS) -> Iterator[None]:
    """Say when a model file takes long, and end it after a limit.

    On the main thread the code is interrupted as by Ctrl-C. Code that swallows this, or
    that gives Python no chance to interrupt it, ends with the process. On other threads
    (workers of Dask) there is the note alone.

    Args:
        path: The model file, for messages.
        seconds: The limit.

    Raises:
        CommandError: If the limit was reached.

    Example:
        >>> with limited(Path("model.py")):
        ...     model = len
    """
    if not seconds > 0:
        raise CommandError(f"--import-limit: must be above 0; got {seconds:g}.")
    watch = _Watch(path, min(seconds, _LONGEST))
    try:
        with watch:
            yield
    except KeyboardInterrupt as stop:
        if not watch.is_over:
            raise
        where = in_file(stop, path.resolve()) or path.name
        raise CommandError(
            f"{where.removesuffix(': KeyboardInterrupt')}: {watch.why}", FAILURE
        ) from None


class _Watch:
    """A thread that looks at the clock while a model file is read."""

    def __init__(self, path: Path, seconds: float):
        self.is_over = False
        self.why = (
            f"was not read within {seconds:g} s. Mend the file, or give a longer "
            "--import-limit."
        )
        self._path = path
        self._seconds = seconds
        self._ended = threading.Event()
        is_main = threading.current_thread() is threading.main_thread()
        self._reader = threading.get_ident() if is_main else None
        self._is_deaf = is_main and signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def __enter__(self) -> "_Watch":
        if self._is_deaf:
            # A command that a script has put into the background.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._reader is not None:
            # The last resort needs no turn of Python's: code that never gives one
            # would keep the thread below from its work.
            with contextlib.suppress(*_NO_FILE):
                faulthandler.dump_traceback_later(
                    self._seconds + 3 * _GRACE_SECONDS, exit=True, file=sys.stderr
                )
        threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        faulthandler.cancel_dump_traceback_later()
        if self._is_deaf:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _look(self) -> None:
        first = min(_NOTE_SECONDS, self._seconds)
        if self._ended.wait(first):
            return
        if first < self._seconds:
            tell(
                f"note: {self._path} is still being read ({first:g} s); Ctrl-C ends "
                f"it, and so does --import-limit ({self._seconds:g} s)"
            )
            if self._ended.wait(self._seconds - first):
                return
        if self._reader is None:
            return
        self.is_over = True
        _interrupt(self._reader)
        if not self._ended.wait(_GRACE_SECONDS):
            tell(f"softcvi: {self._path.name}: {self.why}")
            _end_process(FAILURE)


def _interrupt(thread: int) -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, signal.SIGINT)  # also ends a sleep
    else:
        _thread.interrupt_main()
