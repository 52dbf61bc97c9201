"""Compilation of programs that run once or twice."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax


def rarely_run(function: Callable, effort: int = 1) -> Callable:
    """Compile a function quickly rather than well; inside a program it is part of it.

    The compiler's last passes take longer than they save where a program runs once.

    Args:
        function: A function of pytrees.
        effort: Of the compiler, 0 to 3: 0 for what does little even when it runs.

    Example:
        >>> rarely_run(lambda x: x + 1)(1)
        2
    """
    options = {"xla_backend_optimization_level": effort}
    compiled = eqx.filter_jit(function, compiler_options=options)

    @functools.wraps(function)
    def call(*args):
        leaves = jax.tree_util.tree_leaves(args)
        # Options belong to whole programs: JAX refuses them for a part of one.
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return function(*args) if traced else compiled(*args)

    return call
