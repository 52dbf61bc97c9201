"""Progress of a fit, as a terminal or a log can show it."""

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
