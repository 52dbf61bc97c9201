"""Several processes that run one fit together, through ``jax.distributed``.

All of them run the same program on shares of the same data. What one decides by its
own clock, all must do: the first process decides.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import PyTree


def is_first() -> bool:
    """Whether this is the process that decides, and writes files."""
    return jax.process_index() == 0


def are_many() -> bool:
    """Whether there are other processes."""
    return jax.process_count() > 1


def agreed(value: Any) -> int:
    """What the first process says, in all of them.

    Args:
        value: An integer or a truth value; that of the other processes is ignored.
    """
    return int(shared(np.int32(value))) if are_many() else int(value)


def shared(tree: PyTree) -> PyTree:
    """Arrays of the first process, in all of them.

    Args:
        tree: Arrays of the same shapes everywhere.
    """
    return multihost_utils.broadcast_one_to_all(tree) if are_many() else tree


def ended_elsewhere(step: int, words: str) -> str:
    """What to say when a step fails that needs all processes.

    Args:
        step: Steps that were done.
        words: What JAX says.
    """
    return (
        f"the steps after {step} need all {jax.process_count()} processes, and one of "
        f"them has ended or cannot be reached ({words}). Look at its own messages, and "
        "start all of them again, as many as you like, with the same checkpoint"
    )
