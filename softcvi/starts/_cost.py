"""What a log density costs, counted and not timed, so that budgets are repeatable."""

import math
from typing import Any

from jax.extend import core

# What one operation of a program costs besides its elements.
_OVERHEAD = 10


def cost_of(program: core.ClosedJaxpr) -> int:
    """Elementary operations of one run, by the sizes of all results in a program.

    Loops count by their length where it is known, and once where it is not.

    Args:
        program: A program from ``jax.make_jaxpr``.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> cost_of(jax.make_jaxpr(lambda x: jnp.sin(x) + 1.0)(jnp.zeros(100)))
        220
    """
    return _cost(program.jaxpr)


def _cost(jaxpr: Any) -> int:
    return sum(_cost_of_equation(equation) for equation in jaxpr.eqns)


def _cost_of_equation(equation: Any) -> int:
    inner = 0
    for parameter in equation.params.values():
        if isinstance(parameter, core.ClosedJaxpr):
            inner += _cost(parameter.jaxpr)
        elif isinstance(parameter, core.Jaxpr):
            inner += _cost(parameter)
        elif isinstance(parameter, tuple):
            branches = [p for p in parameter if isinstance(p, core.ClosedJaxpr)]
            inner += max((_cost(branch.jaxpr) for branch in branches), default=0)
    if inner:
        return inner * equation.params.get("length", 1)
    sizes = [math.prod(v.aval.shape) for v in equation.outvars]
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return _OVERHEAD + sizes[0] * math.prod(shape[i] for i in contracted)
    if equation.primitive.name in ("cholesky", "lu", "eigh", "triangular_solve"):
        return _OVERHEAD + sizes[0] * equation.invars[0].aval.shape[-1]
    return _OVERHEAD + sum(sizes)
