"""Output at the terminal: text, warnings and verdicts."""

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

from softcvi.cli._errors import FAILURE, CommandError

# What only authors of libraries can act on.
_FOR_AUTHORS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    ResourceWarning,
)


# Names in files and messages of models could move the cursor, rewrite what stands on
# the screen, set its title, or turn text around.
_CONTROLS = {
    ord(c): c.encode("unicode_escape").decode()
    for c in map(chr, [*range(32), *range(127, 160), *range(0x202A, 0x202F)])
    if c not in "\n\t"
} | {i: f"\\u{i:04x}" for i in [0x200E, 0x200F, *range(0x2066, 0x206A)]}


def visible(text: str) -> str:
    r"""Text whose control characters are shown and not obeyed.

    Args:
        text: From anywhere.

    Example:
        >>> print(visible("\x1b[2Jx"))
        \x1b[2Jx
    """
    return text.translate(_CONTROLS)


def print_anything() -> None:
    """Let terminals that know few characters show others as escapes.

    In the C locale a file name or a parameter with an umlaut would end the command.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def clear_warnings() -> Iterator[None]:
    """Show each warning once, as one line; hide logs and notes for authors.

    Warnings about the model or the fit reach the user, whichever library they come
    from. Python's own ``-W`` and ``PYTHONWARNINGS`` overrule this.
    """
    before = logging.root.manager.disable
    shown: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            tell(f"warning: {text}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.resetwarnings()
            for category in _FOR_AUTHORS:
                warnings.simplefilter("ignore", category, append=True)
            warnings.simplefilter("always", append=True)
            warnings.showwarning = show
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def say(text: str = "", *, quiet: bool = False) -> None:
    """Print for people, on standard output.

    Args:
        text: The text; its control characters are shown.
        quiet: Print nothing.

    Example:
        >>> say("wrote report.html")
        wrote report.html
    """
    if quiet or sys.stdout is None:
        return
    try:
        print(visible(text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        close_output()
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"standard output: {why}", FAILURE) from error


def close_output() -> None:
    """Write no more to standard output, also not what it still holds."""
    with contextlib.suppress(OSError, ValueError):  # a stream of a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(text: str) -> None:
    """Print for people, on standard error, where there is one that takes it.

    Args:
        text: The text; its control characters are shown.

    Example:
        >>> tell("note: the answer is the prior")
    """
    if sys.stderr is not None:  # print would take standard output
        with contextlib.suppress(OSError, ValueError):
            print(visible(text), file=sys.stderr, flush=True)


def say_verdict(level: str, text: str, *, quiet: bool = False) -> None:
    """Print a line that begins with a verdict, in its colour if there are colours."""
    if quiet:
        return
    from rich.console import Console

    colours = {"trusted": "bold green", "caution": "bold yellow"}
    console = Console(highlight=False, soft_wrap=True)
    style = colours.get(level, "bold red")
    console.print(visible(level), style=style, markup=False, end="")
    console.print(": ", end="")
    console.print(visible(text), markup=False)
