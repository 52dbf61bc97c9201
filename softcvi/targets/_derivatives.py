"""Which derivatives a log density has, and second ones by differences of the first."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree, Scalar

from softcvi.targets._cost import inner_programs

# What JAX may differentiate once only, or not at all.
_SUSPICIOUS = ("custom_vjp_call", "igamma", "incomplete_beta", "callback", "while")


def num_derivatives(log_density: Callable, *args: PyTree) -> int:
    """How often JAX can differentiate a log density in its first argument, up to twice.

    Args:
        log_density: The function.
        *args: Its arguments, or their shapes.

    Example:
        >>> import jax.numpy as jnp
        >>> num_derivatives(lambda x: jnp.sum(x**2), jnp.ones(2))
        2
    """
    gradient = jax.value_and_grad(log_density)
    if _primitives_of(gradient, *args) is None:
        # Wrong altogether is for the checks of a fit to explain.
        return 2 if _primitives_of(log_density, *args) is None else 0
    if not may_lack_derivatives(log_density, *args):
        return 2

    def product(x, *rest):
        return jax.jvp(lambda x: gradient(x, *rest), (x,), (x,))

    # JAX refuses forward mode over a ``custom_vjp`` when the program is compiled.
    found = _primitives_of(product, *args)
    return 1 if found is None or "custom_lin" in found else 2


def may_lack_derivatives(log_density: Callable, *args: PyTree) -> bool:
    """Whether derivatives need a look: two are there for nearly all operations.

    Args:
        log_density: The function.
        *args: Its arguments, or their shapes.
    """
    names = _primitives_of(log_density, *args) or ()
    return any(word in name for name in names for word in _SUSPICIOUS)


def twice_differentiable(log_density: Callable) -> Callable:
    """The same log density, with second derivatives by differences of gradients.

    For those in forward mode over the gradient, as in ``jax.hessian``. Functions with
    a ``jax.custom_vjp`` (solvers with an adjoint, models called back together with
    their gradient) and incomplete gamma functions have a gradient alone.

    Args:
        log_density: Function of pytrees; of their arrays of floats it has a gradient.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> f = twice_differentiable(lambda x: jnp.sum(x**3))
        >>> jax.hessian(f)(jnp.ones(2)).round(2).tolist()
        [[6.0, 0.0], [0.0, 6.0]]
    """

    @eqx.filter_custom_jvp
    def value(args: tuple) -> Scalar:
        return log_density(*args)

    @value.def_jvp
    def _(primals, tangents):
        (args,), (moves,) = primals, tangents
        out, gradient = value_and_gradient(*_split(args, moves))
        return out, _dot(gradient, moves)

    @eqx.filter_custom_jvp
    def value_and_gradient(moved: PyTree, still: PyTree) -> tuple[Scalar, PyTree]:
        return eqx.filter_value_and_grad(
            lambda moved: log_density(*eqx.combine(moved, still))
        )(moved)

    @value_and_gradient.def_jvp
    def _(primals, tangents):
        (at, still), (moves, other_moves) = primals, tangents
        if jax.tree_util.tree_leaves(other_moves):
            # Model parameters move in second derivatives alone, which nobody takes.
            raise NotImplementedError("second derivatives in what is held still")
        moves = jax.tree_util.tree_map(
            lambda x, m: jnp.zeros_like(x) if m is None else m, at, moves
        )
        out, gradient = value_and_gradient(at, still)
        turned = _difference(lambda x: value_and_gradient(x, still)[1], at, moves)
        return (out, gradient), (_dot(gradient, moves), turned)

    return lambda *args: value(args)


def twice_if_asked(log_density: Callable) -> Callable:
    """A method ``log_density(target, ...)`` that heeds ``target.has_hessian``."""
    twice = twice_differentiable(log_density)

    @functools.wraps(log_density)
    def call(target, *args):
        return (log_density if target.has_hessian else twice)(target, *args)

    return call


def _difference(gradient: Callable, at: PyTree, moves: PyTree) -> PyTree:
    """Product of the Hessian with a direction, by central differences.

    The first step is a guess; its curvature sets the length of the second.
    """
    eps = jnp.finfo(jnp.result_type(*jax.tree_util.tree_leaves(moves))).eps
    length = jnp.sqrt(_dot(moves, moves))
    unit = _scaled(1 / jnp.where(length > 0, length, 1.0), moves)
    size = 1.0 + jnp.abs(_dot(at, unit))

    def by(step):
        up, down = (gradient(_plus(at, sign * step, unit)) for sign in (1, -1))
        return jax.tree_util.tree_map(lambda a, b: (a - b) / (2 * step), up, down)

    first = eps ** (1 / 3) * size
    along = jnp.abs(_dot(unit, by(first)))
    scale = jnp.where(along > 0, 1 / jnp.sqrt(jnp.where(along > 0, along, 1)), jnp.inf)
    # A tenth of the size is far enough for a direction without curvature.
    step = jnp.clip(eps ** (1 / 6) * scale, 10 * jnp.sqrt(eps) * size, 0.1 * size)
    step = jnp.where(jnp.isfinite(step), step, first)
    return _scaled(length, by(step))


def _split(args: PyTree, moves: PyTree) -> tuple[PyTree, PyTree]:
    is_moved = jax.tree_util.tree_map(
        lambda m: m is not None, moves, is_leaf=lambda m: m is None
    )
    moved, still = eqx.partition(args, is_moved)
    return jax.tree_util.tree_map(jnp.asarray, moved), still  # also of Python floats


def _dot(ones: PyTree, others: PyTree) -> Scalar:
    products = jax.tree_util.tree_map(lambda a, b: jnp.sum(a * b), ones, others)
    return sum(jax.tree_util.tree_leaves(products))


def _scaled(factor: Scalar, tree: PyTree) -> PyTree:
    return jax.tree_util.tree_map(lambda leaf: factor * leaf, tree)


def _plus(at: PyTree, step: Scalar, unit: PyTree) -> PyTree:
    return jax.tree_util.tree_map(lambda x, u: x + step * u, at, unit)


def _primitives_of(function: Callable, *args: PyTree) -> set[str] | None:
    """Names of the operations of its program; None where it has none."""
    try:
        # Equinox warns of what jax.grad returns, but not of a function that calls it.
        program, _, _ = eqx.filter_make_jaxpr(lambda *args: function(*args))(*args)
    except Exception:
        return None
    return set(_names_in(program.jaxpr))


def _names_in(program: Any) -> Iterator[str]:
    for equation in program.eqns:
        yield equation.primitive.name
        for inner, _ in inner_programs(equation):
            yield from _names_in(inner)
