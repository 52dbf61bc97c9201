"""What a piece of an experiment is run with."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from softcvi_experiments._methods import (
    WITHOUT_NEGATIVE,
    NegativeName,
    get_objective,
)
from softcvi_experiments.references import SOURCES, get_source
from softcvi_experiments.tasks import get_task

RecipeName = Literal["paper", "default"]
RECIPES = ("paper", "default")


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fit but its task, method and run.

    Args:
        steps: Optimiser steps.
        num_particles: K.
        negative: What SoftCVI's negative tempers.
        recipe: ``"paper"`` (constant rate, no start-up), or ``"default"`` for ours.
        reference: Name of the reference source.
        seed: Seed of data, start values and fits.

    Example:
        >>> Settings(steps=100).recipe
        'paper'
        >>> Settings(steps=0)
        Traceback (most recent call last):
        ...
        ValueError: steps: must be at least 1; got 0
    """

    steps: int = 50_000
    num_particles: int = 8
    negative: NegativeName = "proposal"
    recipe: RecipeName = "paper"
    reference: str = "builtin"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps: must be at least 1; got {self.steps}")
        if self.recipe not in RECIPES:
            known = ", ".join(RECIPES)
            raise ValueError(f"unknown recipe {self.recipe!r}; known: {known}")
        if self.reference not in SOURCES:
            get_source(self.reference)
        get_objective("softcvi-0.75", self.num_particles, self.negative)

    def identity(self, task: str, method: str) -> dict[str, Any]:
        """What tells the records of one piece from all others.

        Methods without a negative are the same fits whatever it is, and not run twice.

        Args:
            task: The task's name.
            method: The method's name.

        Example:
            >>> sorted(Settings().identity("slcp", "elbo"))[:3]
            ['method', 'negative', 'num_particles']
        """
        settings = asdict(self)
        if method in WITHOUT_NEGATIVE:
            settings["negative"] = "proposal"
        return {"task": task, "method": method, **settings}

    def with_(self, **changes: Any) -> "Settings":
        """A copy with some settings changed.

        Args:
            **changes: New values by name.

        Example:
            >>> Settings().with_(num_particles=2).num_particles
            2
        """
        return replace(self, **changes)


def check_names(tasks: list[str], methods: list[str], runs: int) -> None:
    """Refuse unknown names before any work is done.

    Args:
        tasks: Task names.
        methods: Method names.
        runs: Number of runs.

    Example:
        >>> check_names(["slcp"], ["elbo"], 1)
    """
    if not tasks or not methods:
        raise ValueError("tasks, methods: name at least one of each")
    for task in tasks:
        get_task(task)
    for method in methods:
        get_objective(method)
    if runs < 1:
        raise ValueError(f"runs: must be at least 1; got {runs}")
