"""Compilation of programs that run once or twice."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax

# The compiler's last passes take longer than they save where a program runs only once.
_OPTIONS = {"xla_backend_optimization_level": 1}


def rarely_run(function: Callable) -> Callable:
    """Compile a function quickly rather than well; inside a program it is part of it.

    Args:
        function: A function of pytrees.

    Example:
        >>> rarely_run(lambda x: x + 1)(1)
        2
    """
    compiled = eqx.filter_jit(function, compiler_options=_OPTIONS)

    @functools.wraps(function)
    def call(*args):
        leaves = jax.tree_util.tree_leaves(args)
        # Options belong to whole programs: JAX refuses them for a part of one.
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return function(*args) if traced else compiled(*args)

    return call
