"""Conditions in the program of a log density, as distances from where they hold.

Outside of its support a density has no gradient that leads back. But where the support
is written as comparisons, each of them tells how far it is from being true.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

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
# Where functions are numbers: above the first, below the second.
_DOMAINS = {
    "acos": (-1.0, 1.0),
    "asin": (-1.0, 1.0),
    "atanh": (-1.0, 1.0),
    "erf_inv": (-1.0, 1.0),
    "log": (0.0, jnp.inf),
    "log1p": (-1.0, jnp.inf),
    "rsqrt": (0.0, jnp.inf),
    "sqrt": (0.0, jnp.inf),
}
# Comparisons are to be met by this share of how far they are from being met: of numbers
# in order, those that are equal are not in order yet.
_MARGIN = 0.7


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
        return Condition(_squared(excess), _squared(-excess))
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
        some_false = first.false.min(axes, initial=_FALSE)
        whole = Condition(first.true.sum(axes), some_false)
        return whole if name == "reduce_and" else whole.negated()
    return None


def outside(equation: Any, x: Array | np.ndarray) -> Scalar | None:
    """Square of how far numbers are from where a function of them is defined.

    Args:
        equation: An equation of a program.
        x: Its first input.

    Returns:
        None for functions that are defined everywhere.
    """
    if equation.primitive.name not in _DOMAINS:
        return None
    low, high = _DOMAINS[equation.primitive.name]
    # The function is finite inside of its borders only.
    found = jnp.sum(_squared(low - x))
    return found if high == jnp.inf else found + jnp.sum(_squared(x - high))


def _squared(excess: Float[Array, "..."]) -> Float[Array, "..."]:
    beyond = _MARGIN * jax.lax.stop_gradient(jnp.abs(excess))
    return jnp.maximum(excess + beyond, 0) ** 2
