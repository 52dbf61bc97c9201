"""Tasks by name."""

from softcvi_experiments.tasks._eight_schools import EightSchools
from softcvi_experiments.tasks._garch import Garch
from softcvi_experiments.tasks._linear_regression import LinearRegression
from softcvi_experiments.tasks._slcp import Slcp
from softcvi_experiments.tasks._task import AbstractTask

TASKS: dict[str, AbstractTask] = {
    task.name: task
    for task in (
        EightSchools(),
        LinearRegression(),
        Slcp(),
        Garch("paper"),
        Garch("posteriordb"),
    )
}
PAPER_TASKS = ("eight_schools", "linear_regression", "slcp", "garch")


def get_task(name: str) -> AbstractTask:
    """Find a task.

    Args:
        name: Its name.

    Example:
        >>> get_task("slcp").title
        'SLCP'
        >>> get_task("two_moons")
        Traceback (most recent call last):
        ...
        ValueError: unknown task 'two_moons'; known: eight_schools, ...
    """
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; known: {', '.join(TASKS)}")
    return TASKS[name]
