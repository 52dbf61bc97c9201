"""Work in double precision inside a session that uses single precision.

JAX remembers the dtype of a NumPy array that a model closes over for as long as any
program with it is alive, whatever precision it is next used in: after a look in double
precision the fit in single precision would not compile, and the other way round.
Forgetting all programs mends it, and is needed for such models only.
"""

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from softcvi.targets import AbstractTarget

T = TypeVar("T")


def in_double_precision(work: Callable[[], T], target: AbstractTarget) -> T:
    """Do work that evaluates a target with 64-bit floats, and leave no trace of it.

    A model that insists on single precision gets it.
    """
    if jax.config.jax_enable_x64:
        return work()
    result = None
    with jax.enable_x64(True):
        try:
            _forget_arrays(target, np.float32)
            result = work()
        except TypeError:
            pass
    _forget_arrays(target, np.float64)
    return work() if result is None else result


def _forget_arrays(target: AbstractTarget, dtype: type) -> None:
    """Forget all programs if a NumPy array of the model is remembered like this."""
    vector = jax.ShapeDtypeStruct((target.structure.size,), jnp.result_type(float))
    program = jax.make_jaxpr(lambda x: target.log_density(target.structure.unravel(x)))(
        vector
    )
    if dtype in _array_dtypes(program):
        jax.clear_caches()
        gc.collect()


def _array_dtypes(closed: Any) -> set[Any]:
    """Dtypes of the NumPy arrays in a program and in the programs it calls."""
    values = list(closed.consts)
    found = set()
    for equation in closed.jaxpr.eqns:
        values += [v.val for v in equation.invars if hasattr(v, "val")]
        for inner in jax.tree_util.tree_leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "jaxpr")
        ):
            if hasattr(inner, "jaxpr"):
                found |= _array_dtypes(inner)
    return found | {
        v.dtype.type for v in values if isinstance(v, np.ndarray) and v.ndim > 0
    }
