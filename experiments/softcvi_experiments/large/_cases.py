"""Every posterior of the study by name, each in a small form for tests."""

from collections.abc import Callable
from typing import NamedTuple

from softcvi_experiments.large._closed_forms import funnel, many_well, normal, walk
from softcvi_experiments.large._hierarchies import (
    grouped_logistic,
    item_response,
    state_space,
)
from softcvi_experiments.large._log_concave import cox_process, logistic
from softcvi_experiments.large._posterior import LargePosterior


class Case(NamedTuple):
    """How to make a posterior, with the sizes of the study and of a test.

    Attributes:
        make: Makes it from sizes.
        sizes: Those of the study.
        small: Those of a test.
    """

    make: Callable[..., LargePosterior]
    sizes: tuple
    small: tuple


CASES: dict[str, Case] = {
    "normal-300": Case(normal, (300, 1e4), (6, 1e2)),
    "normal-1000": Case(normal, (1000, 1e3), (7, 1e2)),
    "walk-150": Case(walk, (150,), (5,)),
    "walk-500": Case(walk, (500,), (6,)),
    "logistic-100": Case(logistic, (100, 5_000), (3, 50)),
    "logistic-200": Case(logistic, (200, 5_000), (4, 50)),
    "logistic-500": Case(logistic, (500, 5_000), (5, 50)),
    "logistic-1000": Case(logistic, (1000, 10_000), (6, 50)),
    "cox-1600": Case(cox_process, (40,), (3,)),
    "many-well-32": Case(many_well, (16,), (1,)),
    "many-well-320": Case(many_well, (160,), (2,)),
    "grouped-logistic-200": Case(grouped_logistic, (200,), (4,)),
    "grouped-logistic-2000": Case(grouped_logistic, (2000,), (4,)),
    "item-response-1000x50": Case(item_response, (1000, 50), (4, 3)),
    "state-space-2000": Case(state_space, (2000,), (8,)),
    "funnel-10": Case(funnel, (10,), (3,)),
}


def get_case(name: str, *, small: bool = False) -> LargePosterior:
    """The posterior with this name.

    Args:
        name: One of ``CASES``.
        small: Whether to make the small form.

    Example:
        >>> get_case("walk-150", small=True).sd["level"].shape
        (5,)
    """
    if name not in CASES:
        raise ValueError(f"case: no {name!r}; there are {list(CASES)}.")
    case = CASES[name]
    return case.make(*(case.small if small else case.sizes))
