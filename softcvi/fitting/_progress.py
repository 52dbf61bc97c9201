"""Progress: a bar on a terminal, lines in a log, nothing if not wanted."""

import sys
import time
from abc import abstractmethod
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:  # and imported where it is used, for a quick start
    from rich.console import Console
    from rich.progress import Progress


class AbstractReporter:
    """Told between chunks how far a fit is.

    Example:
        >>> import softcvi
        >>> class Counter(softcvi.fitting.AbstractReporter):
        ...     def begin(self, description, total):
        ...         self.steps = 0
        ...
        ...     def update(self, step, rate, numbers):
        ...         self.steps = step
        ...
        ...     def end(self):
        ...         pass
        >>> counter = Counter()  # softcvi.fit(..., progress=counter)
    """

    @abstractmethod
    def begin(self, description: str, total: int) -> None:
        """A phase of this many steps begins."""

    @abstractmethod
    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        """So many steps are done, at this rate, with these numbers."""

    @abstractmethod
    def end(self) -> None:
        """The phase is over."""


class Silent(AbstractReporter):
    """Says nothing.

    Example:
        >>> import softcvi
        >>> reporter = softcvi.fitting.Silent()
    """

    def begin(self, description: str, total: int) -> None:
        pass

    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        pass

    def end(self) -> None:
        pass


class Bar(AbstractReporter):
    """A live bar: step, steps per second, excess, label ESS and time left.

    Args:
        console: Where to draw, standard error by default.

    Example:
        >>> import softcvi
        >>> reporter = softcvi.fitting.Bar()
    """

    def __init__(self, console: "Console | None" = None):
        self.console = _standard_error() if console is None else console
        self._progress: Progress | None = None

    def begin(self, description: str, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=self.console,
            refresh_per_second=8,
        )
        self._progress.start()
        self._task = self._progress.add_task(
            description, total=total, numbers="compiling"
        )

    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        if self._progress is not None:
            text = _as_text(rate, numbers)
            self._progress.update(self._task, completed=step, numbers=text)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class Lines(AbstractReporter):
    """Plain lines for logs: at the beginning, at most every few seconds, at the end.

    Args:
        stream: Where to write, standard error by default.
        every: Seconds between lines.

    Example:
        >>> import sys, softcvi
        >>> reporter = softcvi.fitting.Lines(sys.stdout, every=5.0)
        >>> reporter.begin("fit", 100)
        fit: started
        >>> reporter.end()
        fit: ended before the first step
    """

    def __init__(self, stream: IO[str] | None = None, every: float = 10.0):
        self.stream = stream
        self.every = every

    def begin(self, description: str, total: int) -> None:
        self._description, self._total = description, total
        self._last, self._step = time.monotonic(), 0
        self._write("started")

    def update(self, step: int, rate: float, numbers: dict[str, float]) -> None:
        self._step = step
        self._text = f"step {step}/{self._total} {_as_text(rate, numbers)}"
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self._write(self._text)

    def end(self) -> None:
        if not self._step:
            self._write("ended before the first step")
        else:
            word = "done" if self._step >= self._total else "stopped at"
            self._write(f"{word} {self._text}")

    def _write(self, text: str) -> None:
        stream = sys.stderr if self.stream is None else self.stream
        print(f"{self._description}: {text}", file=stream, flush=True)


def _as_text(rate: float, numbers: dict[str, float]) -> str:
    parts = [f"{rate:,.0f} steps/s"]
    parts += [f"{name} {value:.3g}" for name, value in numbers.items()]
    return "  ".join(parts)


def as_reporter(progress: bool | AbstractReporter) -> AbstractReporter:
    """Normalise ``progress=``: True is a bar if standard error is a terminal.

    Args:
        progress: Whether to show progress, or a reporter, which is returned as it is.

    Example:
        >>> import softcvi
        >>> isinstance(softcvi.fitting.as_reporter(False), softcvi.fitting.Silent)
        True
    """
    if isinstance(progress, AbstractReporter):
        return progress
    if not progress:
        return Silent()
    console = _standard_error()
    interactive = console.is_terminal or console.is_jupyter
    return Bar(console) if interactive else Silent()


def _standard_error() -> "Console":
    from rich.console import Console

    return Console(stderr=True)
