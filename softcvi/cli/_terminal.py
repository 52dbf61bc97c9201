"""Output at the terminal: text, warnings and verdicts."""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator

# What only authors of libraries can act on.
_FOR_AUTHORS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    ResourceWarning,
)


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
            print(f"warning: {text}", file=sys.stderr)

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
        text: The text, printed as it is.
        quiet: Print nothing.

    Example:
        >>> say("wrote report.html")
        wrote report.html
    """
    if not quiet:
        print(text, flush=True)


def say_verdict(level: str, text: str, *, quiet: bool = False) -> None:
    """Print a line that begins with a verdict, in its colour if there are colours."""
    if quiet:
        return
    from rich.console import Console

    colours = {"trusted": "bold green", "caution": "bold yellow"}
    console = Console(highlight=False, soft_wrap=True)
    style = colours.get(level, "bold red")
    console.print(f"[{style}]{level}[/]: ", end="")
    console.print(text, markup=False)
