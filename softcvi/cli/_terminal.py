"""Manners at the terminal: who may write what, and where."""

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator

from rich.console import Console

from softcvi.fitting import AbstractReporter, Bar, Lines, Silent


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep warnings and logs of other libraries off the user's screen.

    Python's own ``-W`` and ``PYTHONWARNINGS`` bring warnings back.

    Example:
        >>> import warnings
        >>> with quiet_libraries():
        ...     warnings.warn("an old function of some library")
    """
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


class Named(AbstractReporter):
    """Another reporter under a name that says which fit this is.

    Args:
        reporter: The reporter that does the work.
        name: What to call the fit.

    Example:
        >>> import sys
        >>> reporter = Named(Lines(stream=sys.stdout), "SLCP, ELBO")
        >>> reporter.begin("fit", 100)
        SLCP, ELBO: started
    """

    def __init__(self, reporter: AbstractReporter, name: str):
        self.reporter = reporter
        self.name = name

    def begin(self, description: str, total: int) -> None:
        self.reporter.begin(self.name, total)

    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        self.reporter.update(step, rate, numbers)

    def end(self) -> None:
        self.reporter.end()


def make_reporter(quiet: bool = False, name: str = "fit") -> AbstractReporter:
    """A bar on a terminal, lines in a log, nothing if not wanted.

    Args:
        quiet: Nothing at all.
        name: What to call the fit.

    Example:
        >>> type(make_reporter(quiet=True)).__name__
        'Silent'
    """
    if quiet:
        return Silent()
    console = Console(stderr=True)
    live = console.is_terminal and not console.is_dumb_terminal
    return Named(Bar(console) if live else Lines(), name)


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
    """Print a line that begins with a verdict, in its colour if there are colours.

    Args:
        level: ``"trusted"``, ``"caution"`` or ``"not trusted"``.
        text: The rest of the line.
        quiet: Print nothing.

    Example:
        >>> say_verdict("trusted", "k-hat 0.21")
        trusted: k-hat 0.21
    """
    if quiet:
        return
    colours = {"trusted": "bold green", "caution": "bold yellow"}
    console = Console(highlight=False, soft_wrap=True)
    style = colours.get(level, "bold red")
    console.print(f"[{style}]{level}[/]: ", end="")
    console.print(text, markup=False)
