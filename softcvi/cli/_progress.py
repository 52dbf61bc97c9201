"""Fits under a command: their progress, and double precision where it is asked for."""

import contextlib
from collections.abc import Iterator

import jax
from rich.console import Console

from softcvi.fitting import AbstractReporter, Bar, Lines, Silent


class Named(AbstractReporter):
    """Another reporter under a name that says which fit this is."""

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
    """A bar on a terminal, lines in a log, nothing if not wanted."""
    if quiet:
        return Silent()
    console = Console(stderr=True)
    live = console.is_terminal and not console.is_dumb_terminal
    return Named(Bar(console) if live else Lines(), name)


@contextlib.contextmanager
def double_precision(wanted: bool) -> Iterator[None]:
    """Compute in double precision, and restore the setting afterwards."""
    before = jax.config.jax_enable_x64
    if wanted:
        jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
