"""What a log density costs, counted and not timed, so that budgets are repeatable."""

import contextlib
import math
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.extend import core

from softcvi._compile import full_precision, products_on_one_core
from softcvi.targets._base import AbstractTarget

# What one operation of a program costs besides its elements.
_OVERHEAD = 10
# A call of the host, as all densities of Stan are: a tenth of a millisecond, at the
# rate of what a processor does one after the other.
CALLBACK = 100_000
# Operations of JAX on many points at once that take as long as one of the host, which
# is called for one point after the other.
_SLOWER = 10
# Above these, code that was compiled without effort may take longer than that saves:
# models of the zoo with 3,400 to 8,900 operations took 8 % less to 31 % more CPU time.
_NEXT_TO_NOTHING = 2_000
_FEW_PARAMETERS = 20
# Primitives that factorise a matrix or solve with one.
_OF_MATRICES = ("cholesky", "lu", "eigh", "triangular_solve")


@full_precision  # as in all programs, in which the density has been traced
def affordable(
    target: AbstractTarget,
    budget: float,
    *,
    fewest: int,
    most: int,
    each: float = 1.0,
    call: int = CALLBACK,
) -> int:
    """How many evaluations of a log density a budget of operations allows.

    Args:
        target: The target.
        budget: Elementary operations; two cores take about 1e10 in a second.
        fewest: At least so many, whatever they cost.
        most: At most so many, however little they cost.
        each: Evaluations that one of what is counted takes.
        call: What a call of the host costs.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> affordable(target, 1e9, fewest=10, most=1000)
        1000
    """
    cost = cost_of(jax.make_jaxpr(target.log_density)(target.like), call)
    return max(fewest, int(min(most, budget / (each * cost))))


def effort_of(target: AbstractTarget) -> int:
    """How well to compile a program that evaluates a log density thousands of times.

    Args:
        target: The posterior.

    Returns:
        Effort of the compiler: 0 where a log density takes next to no time however it
        is compiled, else 1.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> def log_prob(x):
        ...     return -0.5 * jnp.sum(x**2)
        >>> few, many = (softcvi.DensityTarget(log_prob, jnp.zeros(n)) for n in (2, 50))
        >>> effort_of(few), effort_of(many)
        (0, 1)
    """
    # What callbacks cost is not known.
    if not target.has_gradient or target.structure.size > _FEW_PARAMETERS:
        return 1
    return int(affordable(target, _NEXT_TO_NOTHING, fewest=0, most=1) == 0)


@full_precision
def on_one_core(target: AbstractTarget) -> AbstractContextManager:
    """While it is entered, work with small matrices stays on one core.

    Args:
        target: The posterior, whose matrices may be large.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> with on_one_core(target):
        ...     pass
    """
    if target.amortised:
        return contextlib.nullcontext()
    program = jax.make_jaxpr(target.log_density)(target.like)
    return products_on_one_core(target.structure.size, _rows(program.jaxpr))


def _rows(jaxpr: Any) -> int:
    """Those of the largest matrix that a program factorises or solves with."""
    own = [
        equation.invars[0].aval.shape[-1]
        for equation in jaxpr.eqns
        if equation.primitive.name in _OF_MATRICES
    ]
    inner = [
        _rows(program)
        for equation in jaxpr.eqns
        for program, _ in inner_programs(equation)
    ]
    return max([*own, *inner], default=0)


def _is_call(equation: Any) -> bool:
    return "callback" in equation.primitive.name


def inner_programs(equation: Any) -> list[tuple[Any, Any]]:
    """The programs that an equation calls, with their constants.

    Args:
        equation: An equation of a program.
    """
    leaves = jax.tree_util.tree_leaves(
        list(equation.params.values()), is_leaf=lambda p: _as_program(p) is not None
    )
    return [p for p in map(_as_program, leaves) if p is not None]


def _as_program(parameter: Any) -> tuple[Any, Any] | None:
    if isinstance(parameter, core.ClosedJaxpr):
        return parameter.jaxpr, parameter.consts
    return (parameter, ()) if isinstance(parameter, core.Jaxpr) else None


def call_in_batches(target: AbstractTarget) -> int:
    """What a call of the host costs beside what JAX computes for many points at once.

    By the target's own count where it has one, and never more than the price of any
    call. Counted, not timed, as all budgets are.

    Args:
        target: The target.
    """
    known = target.operations_of_call
    return _SLOWER * (CALLBACK if known is None else min(known, CALLBACK))


def price_of(program: core.ClosedJaxpr, target: AbstractTarget) -> int:
    """Elementary operations of one run, with calls of the host by the target's count.

    Args:
        program: The program of its log density.
        target: The target.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> program = jax.make_jaxpr(target.log_density)(target.like)
        >>> price_of(program, target) == cost_of(program)
        True
    """
    known = target.operations_of_call
    return cost_of(program, CALLBACK if known is None else _SLOWER * known)


def cost_of(program: core.ClosedJaxpr, call: int = CALLBACK) -> int:
    """Elementary operations of one run, by the sizes of all results in a program.

    Loops count by their length where it is known, and once where it is not.

    Args:
        program: A program from ``jax.make_jaxpr``.
        call: What a call of the host costs.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> cost_of(jax.make_jaxpr(lambda x: jnp.sin(x) + 1.0)(jnp.zeros(100)))
        220
    """
    return _cost(program.jaxpr, call)


def _cost(jaxpr: Any, call: int) -> int:
    return sum(_cost_of_equation(equation, call) for equation in jaxpr.eqns)


def _cost_of_equation(equation: Any, call: int) -> int:
    if _is_call(equation):
        return call
    inner = 0
    for parameter in equation.params.values():
        if isinstance(parameter, core.ClosedJaxpr):
            inner += _cost(parameter.jaxpr, call)
        elif isinstance(parameter, core.Jaxpr):
            inner += _cost(parameter, call)
        elif isinstance(parameter, tuple):
            branches = [p for p in parameter if isinstance(p, core.ClosedJaxpr)]
            inner += max((_cost(b.jaxpr, call) for b in branches), default=0)
    if inner:
        return inner * equation.params.get("length", 1)
    sizes = [math.prod(v.aval.shape) for v in equation.outvars]
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return _OVERHEAD + sizes[0] * math.prod(shape[i] for i in contracted)
    if equation.primitive.name in _OF_MATRICES:
        return _OVERHEAD + sizes[0] * equation.invars[0].aval.shape[-1]
    return _OVERHEAD + sum(sizes)
