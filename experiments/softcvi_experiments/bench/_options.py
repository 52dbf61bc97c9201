"""What every suite is told: where to write, how long to take, what to leave out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Settings of a benchmark run.

    Args:
        out: Folder for the result, its table and its plot.
        quick: Tiny sizes that only show that everything works.
        parts: Names of the parts to run; all of the suite's if empty.
        repeats: Repetitions behind each median.
        fits: Fits in one program, for the figure.
        full: Run the whole figure instead of estimating its time.
        say: Called with a line for each thing that is done.

    Example:
        >>> Options(Path("bench"), parts=("overhead",)).wants("steps")
        False
    """

    out: Path
    quick: bool = False
    parts: tuple[str, ...] = ()
    repeats: int = 5
    fits: int = 50
    full: bool = False
    say: Say = print

    def __post_init__(self) -> None:
        for name in ("repeats", "fits"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1")

    def wants(self, part: str) -> bool:
        """Whether a part is to be run.

        Example:
            >>> Options(Path("bench")).wants("memory")
            True
        """
        return not self.parts or part in self.parts

    def check_parts(self, known: tuple[str, ...]) -> None:
        """Refuse parts that the suite does not have.

        Example:
            >>> Options(Path("bench"), parts=("speed",)).check_parts(("memory",))
            Traceback (most recent call last):
            ...
            ValueError: parts: this suite has no 'speed'; it has memory
        """
        for part in self.parts:
            if part not in known:
                has = ", ".join(known)
                raise ValueError(f"parts: this suite has no {part!r}; it has {has}")
