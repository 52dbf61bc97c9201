"""Evaluating a traced program in double precision."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

_WIDER = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


def inner_programs(equation: Any) -> list[tuple[Any, Any]]:
    """The programs that an equation calls, with their constants."""
    leaves = jax.tree_util.tree_leaves(
        list(equation.params.values()), is_leaf=lambda p: _as_program(p) is not None
    )
    return [p for p in map(_as_program, leaves) if p is not None]


class CannotWidenError(TypeError):
    """A program has a part that is tied to single precision."""


def evaluate_widened(jaxpr: Any, consts: Any, *args: Any) -> list[Any]:
    """Run a program with every 32-bit float taken for a 64-bit one.

    Values are widened where they are computed with: a large data set of which a loop
    takes slices is never copied as a whole.
    """
    values: dict[Any, Any] = {}

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        outputs = _RULES.get(equation.primitive.name, _by_default)(equation, inputs)
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
    inner = inner_programs(equation)
    if len(inner) == 1 and len(inner[0][0].invars) == len(inputs):
        return evaluate_widened(*inner[0], *inputs)
    inputs = _all_widened(equation.invars, inputs)
    name = equation.primitive.name
    if inner or "callback" in name:
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


def _as_program(parameter: Any) -> tuple[Any, Any] | None:
    if isinstance(parameter, core.ClosedJaxpr):
        return parameter.jaxpr, parameter.consts
    return (parameter, ()) if isinstance(parameter, core.Jaxpr) else None


def _moved(equation: Any, inputs: list) -> list:
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
    num_xs = _num_stacked(equation.invars, body.jaxpr.invars)
    num_ys = _num_stacked(equation.outvars, body.jaxpr.outvars)
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


def _num_stacked(outside: Any, inside: Any) -> int:
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
    "slice": _moved,
    "dynamic_slice": _moved,
    "pure_callback": _callback,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "bitcast_convert_type": _bitcast,
    "custom_linear_solve": _linear_solve,
    **{name: functools.partial(_scatter, way) for name, way in _SCATTERS.items()},
}
