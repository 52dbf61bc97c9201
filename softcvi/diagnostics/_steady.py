"""Whether a log density is the same function each time that it is traced."""

from typing import Any

import jax
import numpy as np
import paramax
from jax.extend import core

from softcvi._compile import host_key, is_rehearsing, plain_compilation
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractTarget

# Points at which two programs are compared that do not look the same.
_POINTS = 8


def change_between_traces(target: AbstractTarget, guide: AbstractGuide) -> float:
    """How far a log density differs from itself when it is traced again, in nats.

    JAX runs the Python code of a model once, and keeps the operations. What that code
    draws from a generator of random numbers, reads from a clock or counts is a constant
    from then on, and the answer is that of these constants.

    Args:
        target: The posterior.
        guide: Where to compare; anywhere near the posterior.

    Returns:
        0 for programs of the same operations and constants; else the largest difference
        at some of the draws.

    Example:
        >>> import jax.numpy as jnp, numpy as np, softcvi
        >>> noise = np.random.default_rng(0)
        >>> steady = softcvi.DensityTarget(lambda x: -jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(steady)
        >>> change_between_traces(steady, guide)
        0.0
        >>> other = softcvi.DensityTarget(
        ...     lambda x: -jnp.sum((x - noise.normal()) ** 2), jnp.zeros(2)
        ... )
        >>> change_between_traces(other, guide) > 0
        True
    """
    if is_rehearsing():
        return 0.0
    one, other = _traced(target), _traced(target)
    if _are_alike(one, other):
        return 0.0
    values = [_values(program, guide) for program in (one, other)]
    with np.errstate(invalid="ignore"):  # of infinities
        apart = np.abs(values[0] - values[1])
    return float(np.max(apart[np.isfinite(apart)], initial=0.0))


def _traced(target: AbstractTarget) -> core.ClosedJaxpr:
    # Programs are kept by the function: a new one is traced.
    with plain_compilation():
        return jax.make_jaxpr(lambda particle: target.log_density(particle))(
            target.like
        )


def _values(program: core.ClosedJaxpr, guide: AbstractGuide) -> np.ndarray:
    run, guide = core.jaxpr_as_fun(program), paramax.unwrap(guide)

    def at(key: Any) -> Any:
        return run(*jax.tree_util.tree_leaves(guide.sample(key)))[0]

    keys = jax.random.split(host_key(0), _POINTS)
    return np.asarray(jax.jit(jax.vmap(at))(keys), np.float64)


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two programs have the same operations and constants."""
    if isinstance(one, core.ClosedJaxpr):
        return isinstance(other, core.ClosedJaxpr) and (
            _are_all_alike(one.consts, other.consts)
            # Not of ``one.jaxpr``, which is ``one`` itself with JAX 0.11 and later.
            and _are_all_alike(one.eqns, other.eqns)
        )
    if isinstance(one, core.Jaxpr):
        return isinstance(other, core.Jaxpr) and _are_all_alike(one.eqns, other.eqns)
    if isinstance(one, core.JaxprEqn):
        return (
            one.primitive is other.primitive
            and _are_all_alike(one.invars, other.invars)
            and _are_all_alike(list(one.params.values()), list(other.params.values()))
        )
    if isinstance(one, core.Literal):
        return isinstance(other, core.Literal) and _are_alike(one.val, other.val)
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and _are_all_alike(one, other)
    if isinstance(one, np.ndarray | np.generic | jax.Array | float | int | str):
        return one is other or bool(
            np.array_equal(np.asarray(one), np.asarray(other), equal_nan=_is_float(one))
        )
    # Functions, variables, shardings and the like are not compared.
    return True


def _is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def _are_all_alike(ones: Any, others: Any) -> bool:
    return len(ones) == len(others) and all(
        _are_alike(one, other) for one, other in zip(ones, others, strict=True)
    )
