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
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from softcvi._compile import enable_x64
from softcvi.starts._shaking import Shaking
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import inner_programs

_WIDER = {
    # A model may round to these in between.
    np.dtype(jnp.bfloat16): np.dtype(np.float64),
    np.dtype(np.float16): np.dtype(np.float64),
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


# From the name of an operation and what it has computed to what is gone on with.
Rounding = Callable[[str, list], list]


class CannotWidenError(TypeError):
    """A program has a part that is tied to single precision."""


# What an evaluation of a program may raise, also with versions of JAX that build
# programs in another way: the density in the fit's own precision raises again what is
# wrong with the model itself.
CANNOT_EVALUATE = (TypeError, ValueError, LookupError, NotImplementedError)


def evaluate_widened(
    jaxpr: Any, consts: Any, *args: Any, rounded: Rounding | None = None
) -> list[Any]:
    """Run a program with every 32-bit float taken for a 64-bit one.

    Values are widened where they are computed with: a large data set of which a loop
    takes slices is never copied as a whole.

    Args:
        jaxpr: The program.
        consts: Its constants.
        *args: Its arguments.
        rounded: Changes what an operation has computed; not those inside of loops.
    """
    values: dict[Any, Any] = {}

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        rule = _RULES.get(equation.primitive.name)
        inner = inner_programs(equation) if rule is None else []
        if len(inner) == 1 and len(inner[0][0].invars) == len(inputs):
            outputs = evaluate_widened(*inner[0], *inputs, rounded=rounded)
        else:
            outputs = (rule or _by_default)(equation, inputs)
            if rounded is not None:
                outputs = rounded(equation.primitive.name, outputs)
        values.update(zip(equation.outvars, outputs, strict=True))
    return _all_widened(jaxpr.outvars, map(read, jaxpr.outvars))


def _all_widened(atoms: Any, values: Any) -> list:
    pairs = zip(atoms, values, strict=True)
    return [_widened(value, atom.aval.dtype) for atom, value in pairs]


def _wider_dtype(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        return dtype
    return _WIDER.get(np.dtype(dtype), dtype)


def _widened(value: Any, dtype: Any) -> Any:
    wider = _wider_dtype(dtype)
    if jnp.issubdtype(wider, jax.dtypes.extended):
        return value
    if isinstance(value, jax.Array):
        return value if value.dtype == wider else value.astype(wider)
    # A copy on the host, so that the compiler need not convert it: and a new one, as
    # JAX remembers the array of the model itself in the precision of the fit.
    return np.array(value, wider)


def _by_default(equation: Any, inputs: list) -> list:
    inputs = _all_widened(equation.invars, inputs)
    name = equation.primitive.name
    if inner_programs(equation) or "callback" in name:
        raise CannotWidenError(f"{name} is tied to single precision.")
    params = {k: _wider_parameter(p) for k, p in equation.params.items()}
    outputs = equation.primitive.bind(*inputs, **params)
    return list(outputs) if equation.primitive.multiple_results else [outputs]


def _wider_parameter(parameter: Any) -> Any:
    if isinstance(parameter, np.dtype | type(jnp.float32)) or (
        isinstance(parameter, type) and issubclass(parameter, np.generic)
    ):
        return _WIDER.get(np.dtype(parameter), parameter)
    return parameter


def _sliced(equation: Any, inputs: list) -> list:
    """A part of an array, in the width that the array has."""
    # JAX remembers arrays of the host in the precision that they are first used in.
    data = [
        value if isinstance(value, jax.Array) else _widened(value, atom.aval.dtype)
        for atom, value in zip(equation.invars, inputs, strict=True)
    ]
    return [equation.primitive.bind(*data, **equation.params)]


def _callback(equation: Any, inputs: list) -> list:
    """A call of the host that depends on no float reads data, in their own width."""
    if any(jnp.issubdtype(atom.aval.dtype, jnp.inexact) for atom in equation.invars):
        return _by_default(equation, inputs)
    return equation.primitive.bind(*inputs, **equation.params)


def _scan(equation: Any, inputs: list) -> list:
    body = equation.params["jaxpr"]
    # Versions of JAX differ in how they say what is carried; shapes say it, too: what
    # is scanned over has one axis more outside.
    num_xs = num_stacked(equation.invars, body.jaxpr.invars)
    num_ys = num_stacked(equation.outvars, body.jaxpr.outvars)
    end = len(inputs) - num_xs
    begin = end - (len(equation.outvars) - num_ys)
    wide = _all_widened(equation.invars, inputs)
    # Constants keep their width: the body widens what it takes of them.
    given = [
        value if i < begin and isinstance(value, jax.Array) else jnp.asarray(wider)
        for i, (value, wider) in enumerate(zip(inputs, wide, strict=True))
    ]
    likes = [
        jax.ShapeDtypeStruct(v.aval.shape, value.dtype)
        for v, value in zip(body.jaxpr.invars, given, strict=True)
    ]
    wider = jax.make_jaxpr(functools.partial(evaluate_widened, body.jaxpr, body.consts))
    params = {**equation.params, "jaxpr": wider(*likes)}
    return equation.primitive.bind(*given, **params)


def num_stacked(outside: Any, inside: Any) -> int:
    """How many variables of a loop have one axis more outside of its body."""
    pairs = zip(outside, inside, strict=True)
    return sum(len(out.aval.shape) > len(body.aval.shape) for out, body in pairs)


def _while(equation: Any, inputs: list) -> list:
    p, inputs = equation.params, _all_widened(equation.invars, inputs)
    num_test, num_body = p["cond_nconsts"], p["body_nconsts"]
    test_consts = inputs[:num_test]
    body_consts = inputs[num_test : num_test + num_body]
    test, body = (
        functools.partial(evaluate_widened, p[name].jaxpr, p[name].consts)
        for name in ("cond_jaxpr", "body_jaxpr")
    )
    return jax.lax.while_loop(
        lambda carry: test(*test_consts, *carry)[0],
        lambda carry: body(*body_consts, *carry),
        [jnp.asarray(value) for value in inputs[num_test + num_body :]],
    )


def _cond(equation: Any, inputs: list) -> list:
    inputs = _all_widened(equation.invars, inputs)
    branches = [
        functools.partial(evaluate_widened, branch.jaxpr, branch.consts)
        for branch in equation.params["branches"]
    ]
    return jax.lax.switch(inputs[0], branches, *inputs[1:])


def _bitcast(equation: Any, inputs: list) -> list:
    # Bits of a float mean something in its own width only.
    narrow = _all_widened(equation.invars, inputs)[0]
    if np.dtype(jnp.result_type(narrow)) in _WIDER.values():
        narrow = jnp.asarray(narrow).astype(equation.invars[0].aval.dtype)
    return [equation.primitive.bind(narrow, **equation.params)]


def _scatter(way: Callable, equation: Any, inputs: list) -> list:
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    inputs = _all_widened(equation.invars, inputs)
    return [way(*inputs, **{name: equation.params[name] for name in names})]


def _linear_solve(equation: Any, inputs: list) -> list:
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    inputs = _all_widened(equation.invars, inputs)
    begin = lengths.matvec + lengths.vecmat
    consts = inputs[begin : begin + lengths.solve]
    right = inputs[sum(lengths) :]
    return evaluate_widened(
        programs.solve.jaxpr, programs.solve.consts, *consts, *right
    )


_SCATTERS: dict[str, Callable] = {
    "scatter": jax.lax.scatter,
    "scatter-add": jax.lax.scatter_add,
    "scatter-mul": jax.lax.scatter_mul,
    "scatter-min": jax.lax.scatter_min,
    "scatter-max": jax.lax.scatter_max,
}
_RULES: dict[str, Callable] = {
    "slice": _sliced,
    "dynamic_slice": _sliced,
    "pure_callback": _callback,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "bitcast_convert_type": _bitcast,
    "custom_linear_solve": _linear_solve,
    **{name: functools.partial(_scatter, way) for name, way in _SCATTERS.items()},
}


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

    def own_context(self) -> Any:
        """The context of the model's own precision, as it cannot be traced in two."""
        return double_precision(self._own_dtype == np.float64)

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

    def shaken(
        self, x: Float[Array, " d"], seed: Float[ArrayLike, ""]
    ) -> Float[Array, ""]:
        """Log density with other rounding errors, for each seed others.

        Args:
            x: The point.
            seed: Any number.
        """
        rounded = Shaking(seed, 2 * self.rounding)
        program = self.program()
        outputs = evaluate_widened(program.jaxpr, program.consts, x, rounded=rounded)
        return outputs[0]

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
        except CANNOT_EVALUATE:
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
