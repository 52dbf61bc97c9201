"""Models by name: the paper's four tasks, and those of the zoo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from softcvi_experiments.bench._problems import get_problem as task_problem
from softcvi_experiments.tasks import PAPER_TASKS, get_task
from softcvi_experiments.zoo import get as zoo_model


@dataclass(frozen=True)
class Problem:
    """A NumPyro model with its data.

    Args:
        name: Name of the task or zoo model.
        model: The model.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """

    name: str
    model: Callable[..., None]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def moved_args(self) -> tuple[Any, ...]:
        """Arguments of the same shapes with other numbers, where they are floats."""

        def moved(leaf: Any) -> Any:
            is_float = isinstance(leaf, jax.Array) and leaf.dtype.kind == "f"
            return leaf + 0.01 * jnp.std(leaf) if is_float else leaf

        return jax.tree_util.tree_map(moved, self.args)


def get_problem(name: str) -> Problem:
    """The task or zoo model of this name.

    Args:
        name: One of the paper's tasks, or a model of the zoo.

    Example:
        >>> get_problem("eight_schools").name
        'eight_schools'
    """
    if name in PAPER_TASKS:
        problem = task_problem(name)
        return Problem(name, problem.model, problem.args)
    entry = zoo_model(name)
    return Problem(name, entry.model, entry.args, entry.kwargs)


def title_of(name: str) -> str:
    """What tables call a model.

    Args:
        name: Its name.
    """
    return get_task(name).title if name in PAPER_TASKS else name
