"""Conditions in the program of a log density, as distances from where they hold.

Outside of its support a density has no gradient that leads back. But where the support
is written as comparisons, each of them tells how far it is from being true.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Comparisons that are true where the first less the second is small, and large.
_BELOW, _ABOVE = ("lt", "le"), ("gt", "ge")
# Operations that take or move elements, whatever these are.
MOVES = (
    "broadcast_in_dim",
    "copy",
    "dynamic_slice",
    "gather",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
)
_FALSE = 1e9


class Condition(eqx.Module):
    """Squares of how far booleans are from being true, and from being false.

    Attributes:
        true: Zero where they are true.
        false: Zero where they are false.
    """

    true: Float[Array, "..."]
    false: Float[Array, "..."]

    @classmethod
    def constant(cls, array: Array | np.ndarray) -> "Condition":
        """Of booleans that do not depend on the parameters."""
        return cls(jnp.where(array, 0.0, _FALSE), jnp.where(array, _FALSE, 0.0))

    def negated(self) -> "Condition":
        """Of their opposites."""
        return Condition(self.false, self.true)

    def all_with(self, other: "Condition") -> "Condition":
        """Of both."""
        return Condition(self.true + other.true, jnp.minimum(self.false, other.false))


def condition_of(
    equation: Any,
    arrays: Sequence[Array | np.ndarray],
    known: Sequence[Condition | None],
    bind: Callable[[Array], Array],
) -> Condition | None:
    """The condition that an equation makes of numbers or of others, if it does.

    Args:
        equation: An equation of a program.
        arrays: Its inputs.
        known: Conditions that its inputs are, where they are.
        bind: Its output for another first input.
    """
    name = equation.primitive.name
    if name in _BELOW + _ABOVE:
        if not jnp.issubdtype(arrays[0].dtype, jnp.floating):
            return None
        excess = arrays[0] - arrays[1]
        excess = excess if name in _BELOW else -excess
        return Condition(jnp.maximum(excess, 0) ** 2, jnp.maximum(-excess, 0) ** 2)
    if known[0] is not None and name in MOVES:
        return Condition(bind(known[0].true), bind(known[0].false))
    if all(condition is None for condition in known):
        return None
    first, *others = (
        Condition.constant(array) if condition is None else condition
        for array, condition in zip(arrays, known, strict=True)
    )
    if name == "not":
        return first.negated()
    if name == "and":
        return first.all_with(others[0])
    if name == "or":
        return first.negated().all_with(others[0].negated()).negated()
    if name in ("reduce_and", "reduce_or"):
        axes = equation.params["axes"]
        first = first if name == "reduce_and" else first.negated()
        whole = Condition(first.true.sum(axes), first.false.min(axes))
        return whole if name == "reduce_and" else whole.negated()
    return None
