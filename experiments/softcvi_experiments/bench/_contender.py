"""One library's loop on one problem, and the watch on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softcvi_experiments.bench._timing import muted, seconds_a_step, seconds_of

Run = Callable[[int], object]


@dataclass(frozen=True)
class Contender:
    """A way to fit a problem.

    Args:
        label: What tables call it.
        package: The package whose loop runs.
        make: Builds it, so that packages are imported only when their turn comes;
            returns ``run(steps)``, which blocks until done, and optionally the call
            that users type where ``run`` is that call's loop compiled beforehand.

    Example:
        >>> Contender("nothing", "none", lambda: (lambda steps: None, None)).label
        'nothing'
    """

    label: str
    package: str
    make: Callable[[], tuple[Run, Run | None]]


def time_contender(contender: Contender, steps: int, repeats: int) -> dict[str, Any]:
    """Seconds of the first call and microseconds of a step.

    Args:
        contender: What to time.
        steps: Steps of a run.
        repeats: Repetitions behind each median.

    Example:
        >>> nothing = Contender("nothing", "none", lambda: (lambda steps: None, None))
        >>> time_contender(nothing, 10, 1)["status"]
        'ok'
    """
    row: dict[str, Any] = {"label": contender.label, "package": contender.package}
    try:
        run, typed = contender.make()
        with muted():
            whole = seconds_of(lambda: (typed or run)(steps))
            step = seconds_a_step(run, max(1, steps // 5), steps, repeats)
    except ImportError as error:
        return {**row, "status": f"not installed: {error.name}"}
    except Exception as error:
        if contender.package == "softcvi":
            raise
        # One library's failure is a row of the table; the others are still measured.
        return {**row, "status": f"failed: {type(error).__name__}"}
    return {
        **row,
        "status": "ok",
        "us_a_step": 1e6 * step,
        "seconds_first_call": whole,
    }
