"""The worker of the suite: one task at a time."""

from collections.abc import Callable
from typing import Any

from softcvi_experiments.children import error_record
from softcvi_experiments.faults._files import read_damaged
from softcvi_experiments.faults._inside import survives
from softcvi_experiments.faults._long import long_run
from softcvi_experiments.faults._runs import baseline, meets_faults
from softcvi_experiments.faults._writers import two_writers

_PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "files": read_damaged,
    "alone": baseline,
    "kills": meets_faults,
    "signals": meets_faults,
    "disk": survives,
    "ctrl-c": survives,
    "clock": survives,
    "writers": two_writers,
    "long": long_run,
}


def run_task(**task: Any) -> dict[str, Any]:
    """Run a task; an error becomes part of the record.

    Args:
        **task: ``part`` and what it needs.
    """
    try:
        return _PARTS[task["part"]](task)
    except Exception as error:
        return {**task, "ok": False, **error_record(error)}
