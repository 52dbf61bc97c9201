"""The paper's published numbers, for comparison."""

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softcvi_experiments._settings import Settings

_OWN_DATA = ("slcp", "garch")


@functools.cache
def _numbers() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "published.json").read_text())


def published(task: str, method: str, settings: Settings) -> dict[str, Any] | None:
    """Quartiles and coverage that the paper reports, or None where it does not.

    The SLCP and GARCH data inside this package are simulated, so that the paper's
    numbers of these tasks belong beside its own references alone.

    Args:
        task: The task's name.
        method: The method's name.
        settings: K, the negative and the reference matter.

    Example:
        >>> settings = Settings(reference="posteriordb-sbibm")
        >>> published("garch", "elbo", settings)["log_prob_reference"]
        [1.8751, 1.888, 1.905]
        >>> published("garch", "elbo", Settings()) is None
        True
    """
    if task in _OWN_DATA and settings.reference == "builtin":
        return None
    figure = f"{settings.num_particles} {settings.negative}"
    return _numbers()["metrics"].get(figure, {}).get(task, {}).get(method)


def published_gap(method: str, settings: Settings) -> float | None:
    """The paper's distance to the exact optimum in linear regression, in nats.

    Args:
        method: The method's name.
        settings: Only K and the negative matter.

    Example:
        >>> published_gap("elbo", Settings())
        1.2
    """
    if (settings.num_particles, settings.negative) != (8, "proposal"):
        return None
    return _numbers()["linear_regression_gap"].get(method)


def other_data_note(tasks: Iterable[str], settings: Settings) -> str:
    """Say under a table why some published numbers are not in it.

    Args:
        tasks: The table's tasks.
        settings: What the runs were made with.

    Example:
        >>> other_data_note(["eight_schools"], Settings())
        ''
    """
    apart = [task for task in tasks if task in _OWN_DATA]
    if not apart or settings.reference != "builtin":
        return ""
    return (
        f"\n\nThe data of {' and '.join(apart)} are our own here; the published "
        "numbers stand beside --reference posteriordb-sbibm."
    )
