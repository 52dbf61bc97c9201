"""The paper's published numbers, for comparison."""

import functools
import json
from pathlib import Path
from typing import Any

from softcvi.experiments._settings import Settings


@functools.cache
def _numbers() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "published.json").read_text())


def published(task: str, method: str, settings: Settings) -> dict[str, Any] | None:
    """Quartiles and coverage that the paper reports, or None where it does not.

    Args:
        task: The task's name.
        method: The method's name.
        settings: Only K and the negative matter.

    Example:
        >>> published("garch", "elbo", Settings())["log_prob_reference"]
        [1.8751, 1.888, 1.905]
        >>> published("garch", "elbo", Settings(num_particles=4)) is None
        True
    """
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
