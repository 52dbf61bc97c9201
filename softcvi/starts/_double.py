"""A target's log density with all its floats widened to double precision.

The search needs the digits: Hessians of badly scaled models lose theirs in single
precision. A model may close over NumPy arrays, which JAX remembers in the precision
they were first traced in for as long as a program with them is alive, so it cannot be
traced in two precisions in turn. Here it is traced once, in the user's own precision,
and the resulting program is evaluated with every ``float32`` taken for ``float64``.
Derivatives are taken before that, so that derivative rules of the model's own hold.
Nothing outside the local ``double_precision`` context is changed.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jaxtyping import Array, Float

from softcvi._compile import enable_x64
from softcvi.starts._widen import evaluate_widened, inner_programs
from softcvi.targets import AbstractTarget


def double_precision(enabled: bool = True) -> Any:
    """A context in which JAX works in double precision."""
    return enable_x64(enabled)


class Density(eqx.Module):
    """The log density of a target on vectors, with its first two derivatives.

    Args:
        target: The target.
        widened: Whether to evaluate the program of the fit's own precision in double.
        traced_in_double: Whether to trace the model in double precision instead.
    """

    target: AbstractTarget
    widened: bool = eqx.field(static=True)
    traced_in_double: bool = eqx.field(static=True, default=False)

    @property
    def dtype(self) -> Any:
        """The dtype of points."""
        is_double = self.widened or self.traced_in_double
        return np.dtype(np.float64) if is_double else self._own_dtype

    @property
    def rounding(self) -> float:
        """Relative rounding of points."""
        return float(np.finfo(self.dtype).eps)

    def context(self) -> Any:
        """The context to evaluate in."""
        is_double = self.widened or self.traced_in_double
        return double_precision() if is_double else contextlib.nullcontext()

    def value(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Log density."""
        return self._evaluated(self._plain, x)

    def gradient(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """Gradient of the log density."""
        return self._evaluated(jax.grad(self._plain), x)

    def value_and_gradient(
        self, x: Float[Array, " d"]
    ) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        """Both from one pass."""
        return self._evaluated(jax.value_and_grad(self._plain), x)

    def gradient_and_product(
        self, x: Float[Array, " d"], v: Float[Array, " d"]
    ) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """Gradient, and the product of the Hessian with a vector."""

        def product(x, v):
            return jax.jvp(jax.grad(self._plain), (x,), (v,))

        return self._evaluated(product, x, v)

    def program(self) -> core.ClosedJaxpr:
        """The program of the log density, to count its cost."""
        dtype = self._own_dtype if self.widened else self.dtype
        like = jax.ShapeDtypeStruct((self.target.structure.size,), dtype)
        with double_precision(bool(jax.config.jax_enable_x64) and not self.widened):
            return jax.make_jaxpr(self._plain)(like)

    @property
    def _own_dtype(self) -> Any:
        return jnp.result_type(*self.target.structure.dtypes)

    def _plain(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        return self.target.log_density(self.target.structure.unravel(x))

    def _evaluated(self, function: Callable, *points: Array) -> Any:
        if not self.widened:
            return function(*points)
        likes = [jax.ShapeDtypeStruct(x.shape, self._own_dtype) for x in points]
        with double_precision(False):
            program, shape = jax.make_jaxpr(function, return_shape=True)(*likes)
        outputs = evaluate_widened(program.jaxpr, program.consts, *points)
        return jax.tree_util.tree_unflatten(
            jax.tree_util.tree_structure(shape), outputs
        )


def as_density(target: AbstractTarget) -> Density:
    """The density in double precision, or in the fit's own where that cannot be.

    A part of a program that cannot be widened, such as a callback, may work in either
    precision. Then the model is traced in double, unless it has arrays that JAX would
    from then on remember so.
    """
    plain = Density(target, widened=False)
    if jax.config.jax_enable_x64 or not target.structure.is_continuous:
        return plain
    widened = Density(target, widened=True)
    if _is_double(widened):
        return widened
    program = plain.program()
    if _has_host_arrays(program.jaxpr, program.consts):
        return plain
    in_double = Density(target, widened=False, traced_in_double=True)
    return in_double if _is_double(in_double) else plain


def _is_double(density: Density) -> bool:
    """Whether a density can be evaluated, and gives 64-bit floats only."""
    target = density.target
    function = density.value_and_gradient if target.has_gradient else density.value
    with density.context():
        point = jax.ShapeDtypeStruct((target.structure.size,), np.float64)
        try:
            out = eqx.filter_eval_shape(function, point)
        # Also for versions of JAX that build programs in another way: the density in
        # the fit's own precision raises again what is wrong with the model itself.
        except (TypeError, ValueError, LookupError, NotImplementedError):
            return False
    return all(leaf.dtype == np.float64 for leaf in jax.tree_util.tree_leaves(out))


def _has_host_arrays(jaxpr: Any, consts: Any) -> bool:
    """Whether a program or one it calls holds arrays that are not JAX's own."""
    values = list(consts)
    for equation in jaxpr.eqns:
        values += [v.val for v in equation.invars if isinstance(v, core.Literal)]
        if any(_has_host_arrays(*inner) for inner in inner_programs(equation)):
            return True
    return any(np.ndim(v) > 0 and not isinstance(v, jax.Array) for v in values)
