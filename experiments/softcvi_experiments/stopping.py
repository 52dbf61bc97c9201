"""Studies that end in time, with what they have."""

import contextlib
import signal
from collections.abc import Iterator


def say(line: str) -> None:
    """Print a line at once, also where the output is a file.

    Example:
        >>> say("one of two")
        one of two
    """
    print(line, flush=True)


@contextlib.contextmanager
def stopped_after(seconds: int | None) -> Iterator[None]:
    """End what is inside after a time, or by Ctrl-C, without an error.

    Args:
        seconds: The time; None for no limit.

    Example:
        >>> with stopped_after(60):
        ...     raise KeyboardInterrupt
        stopped; the same command continues here
    """
    if seconds:
        signal.signal(signal.SIGALRM, _interrupt)
        signal.alarm(seconds)
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; the same command continues here")
    finally:
        signal.alarm(0)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
