"""Reading the program of a log density: which scalars are one of several branches.

The log of a sum of exponentials is, nearly everywhere, the largest of its terms. So is
a maximum, and an absolute value is one of two. A choice of branches makes a density of
its own, which can be climbed where the whole leads elsewhere.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.starts._conditions import MOVES, Condition, condition_of, outside
from softcvi.starts._double import num_stacked
from softcvi.targets import AbstractTarget

_CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint")
# Operations that leave numbers what they are.
_SAME = (*MOVES, "convert_element_type")
# Operations that act alike on numbers and on their logs.
_ALIKE = (*_SAME, "abs")
# What is chosen of a scalar instead of a branch: all of it, or a mean.
WHOLE, MEAN = -1, -2
# Loops that are unrolled: steps, and operations in all.
_LONGEST, _LARGEST = 64, 4_000
_SOFT = ("log", "log1p")
_BRANCHING = ("abs", "log1p", "max", "reduce_max")


class Value:
    """An array of a program, with its logs where these are known.

    Args:
        array: The array.
        varies: Whether it depends on the parameters.
        is_no_density: Whether it is known to be minus infinity, the log of no density.
    """

    def __init__(self, array: Any, varies: bool = False, is_no_density: bool = False):
        self.array = array
        self.varies = varies
        # Its logs, where it is an exponential.
        self.logs: Any = None
        # Logs of the terms, where it is a sum of exponentials.
        self.terms: Any = None
        # Its branches, where it is one of several, and their number in the program.
        self.branches: Any = None
        self.site: int | None = None
        # How far it is from being true and false, where it is a comparison.
        self.condition: Condition | None = None
        self.is_no_density = is_no_density

    @property
    def is_scalar(self) -> bool:
        """Whether it is one number."""
        return self.array.size == 1

    def log_terms(self) -> Float[Array, " n"]:
        """Logs of what this scalar is the sum of."""
        if self.terms is not None:
            return self.terms
        if self.logs is not None:
            return jnp.ravel(self.logs)
        array = jnp.asarray(self.array, jnp.result_type(float))
        tiny = jnp.finfo(array.dtype).tiny
        return jnp.log(jnp.maximum(jnp.abs(jnp.ravel(array)), tiny))

    def own_branches(self) -> Float[Array, " n"]:
        """Its branches, or itself."""
        return jnp.ravel(self.array) if self.branches is None else self.branches


class Evaluation:
    """One evaluation of a log density in which branches can be chosen.

    Args:
        choice: Branches, one for each scalar that has some; None to count them only.
        shifts: Numbers to add to these scalars, for derivatives.
    """

    def __init__(self, choice: Array | None, shifts: Array | None = None):
        self.choice = choice
        self.shifts = shifts
        self.counts: list[int] = []
        # How far each condition is from being met.
        self.conditions: list[Array] = []
        # How far what all particles with a density have in common is from being met.
        self.needs: list[Array] = []

    def of(self, target: AbstractTarget, particle: PyTree) -> Scalar:
        """The log density.

        Args:
            target: The target.
            particle: The parameters.
        """
        leaves, tree = jax.tree_util.tree_flatten(particle)

        def plain(*leaves):
            return target.log_density(jax.tree_util.tree_unflatten(tree, leaves))

        program = jax.make_jaxpr(plain)(*leaves)
        inputs = [Value(leaf, varies=True) for leaf in leaves]
        return self._run(program.jaxpr, program.consts, inputs)[0].array

    def _run(self, jaxpr: Any, consts: Any, inputs: list[Value]) -> list[Value]:
        values: dict[Any, Value] = {}

        def read(atom):
            if not isinstance(atom, core.Literal):
                return values[atom]
            # A literal is known before it becomes an array of a program.
            is_no_density = _is_minus_infinity(atom.val)
            return Value(jnp.asarray(atom.val), is_no_density=is_no_density)

        constants = [
            Value(const, is_no_density=_is_minus_infinity(const)) for const in consts
        ]
        values.update(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, inputs, strict=True))
        for equation in jaxpr.eqns:
            outputs = self._outputs(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _outputs(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name = equation.primitive.name
        if name in _CALLS and "jaxpr" in equation.params:
            inner = equation.params["jaxpr"]
            if isinstance(inner, core.ClosedJaxpr):
                return self._run(inner.jaxpr, inner.consts, inputs)
            return self._run(inner, (), inputs)
        if name == "scan" and _can_be_unrolled(equation):
            return self._unrolled(equation, inputs)
        outputs = _bound(equation, [value.array for value in inputs])
        varies = any(value.varies for value in inputs)
        made = [Value(output, varies) for output in outputs]
        if name in _SAME:
            made[0].is_no_density = inputs[0].is_no_density
        if not varies or len(made) != 1:
            return made
        need = outside(equation, inputs[0].array)
        self.needs += [] if need is None else [need]
        branches = _branches(equation, inputs) if made[0].is_scalar else None
        if branches is not None:
            if name in _SOFT or _adds_two(equation):
                # An exponential may overflow once other branches are chosen.
                whole = jax.scipy.special.logsumexp(branches)
                made = [Value(whole.reshape(made[0].array.shape), varies=True)]
            merged = () if name == "abs" else inputs
            return [self._chosen(made[0], branches, merged)]
        _follow(equation, inputs, made[0])
        self._follow_condition(equation, inputs, made[0])
        return made

    def _follow_condition(self, equation: Any, inputs: list[Value], out: Value) -> None:
        name, conditions = equation.primitive.name, [v.condition for v in inputs]
        if name == "select_n" and conditions[0] is not None:
            false, true = conditions[0].false, conditions[0].true
            self.conditions += [true, false]
            # The cases are those for false and for true.
            for case, need in zip(inputs[1:], (true, false), strict=False):
                self.needs += [jnp.sum(need)] if case.is_no_density else []
        elif name in ("or", "reduce_or"):
            self.conditions += [c.true for c in conditions if c is not None]
        out.condition = condition_of(
            equation,
            [value.array for value in inputs],
            conditions,
            lambda array: _output_for(equation, inputs, array),
        )

    def _chosen(
        self, whole: Value, branches: Float[Array, " n"], merged: Sequence[Value]
    ) -> Value:
        for value in merged:
            if value.site is not None:
                self.counts[value.site] = 0  # its branches are among these
        site = len(self.counts)
        self.counts.append(branches.size)
        array = whole.array
        if self.choice is not None:
            pick = self.choice[site]
            branch = jnp.take(branches, jnp.maximum(pick, 0))
            branch = jnp.where(pick == MEAN, _uneven_mean(branches), branch)
            branch = branch.reshape(array.shape).astype(array.dtype)
            array = jnp.where(pick == WHOLE, array, branch)
        if self.shifts is not None:
            array = array + self.shifts[site].astype(array.dtype)
        made = Value(array, varies=True)
        made.branches, made.site = branches, site
        return made

    def _unrolled(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A loop step by step, so that what it adds up is seen."""
        params, body = equation.params, equation.params["jaxpr"]
        begin = len(inputs) - num_stacked(equation.invars, body.jaxpr.invars)
        num_ys = num_stacked(equation.outvars, body.jaxpr.outvars)
        num_carry = len(equation.outvars) - num_ys
        consts, carry = inputs[: begin - num_carry], inputs[begin - num_carry : begin]
        rows, steps = [], range(params["length"])
        for i in reversed(steps) if params["reverse"] else steps:
            some = [Value(x.array[i], x.varies) for x in inputs[begin:]]
            outputs = self._run(body.jaxpr, body.consts, [*consts, *carry, *some])
            carry = outputs[:num_carry]
            rows.append(outputs[num_carry:])
        rows = rows[::-1] if params["reverse"] else rows
        stacked = [
            Value(jnp.stack([v.array for v in column]), any(v.varies for v in column))
            for column in zip(*rows, strict=True)
        ]
        return [*carry, *stacked]


def _uneven_mean(branches: Float[Array, " n"]) -> Scalar:
    """A mean in which every branch counts and opposite ones do not cancel."""
    weights = jnp.arange(branches.size, 0, -1, dtype=branches.dtype)
    return jnp.dot(weights, branches) / jnp.sum(weights)


def _branches(equation: Any, inputs: list[Value]) -> Float[Array, " n"] | None:
    """What a scalar is one of, or the soft maximum of; None if it is neither."""
    name, first = equation.primitive.name, inputs[0]
    is_exponential = first.logs is not None or first.terms is not None
    if name == "log":
        return first.terms
    if name == "log1p" and is_exponential:
        logs = first.log_terms()
        return jnp.concatenate([jnp.zeros(1, logs.dtype), logs])
    if name == "abs" and not is_exponential:
        both = jnp.ravel(first.array)[0] * jnp.array([1.0, -1.0])
        return both.astype(first.array.dtype)
    if name == "reduce_max" and not first.is_scalar:
        return jnp.ravel(first.array)
    all_vary = all(value.varies for value in inputs)
    # A value of the parameters and a constant are a bound, not a maximum of densities.
    if (name == "max" and all_vary) or (_adds_two(equation) and inputs[-1].is_scalar):
        return jnp.concatenate([value.own_branches() for value in inputs])
    if name == "select_n" and all_vary and len(inputs) == 3:
        return jnp.concatenate([value.own_branches() for value in inputs[1:]])
    return None


def _follow(equation: Any, inputs: list[Value], out: Value) -> None:
    """Keep the logs of exponentials through products, reshaping and sums."""
    name, first = equation.primitive.name, inputs[0]
    if name == "exp":
        out.logs = first.array
        if first.branches is not None:
            out.terms, out.site = first.branches, first.site
    elif name in _ALIKE:
        if first.logs is not None:
            # The log of an absolute value is that of the number itself here.
            alike = name == "abs"
            out.logs = (
                first.logs if alike else _output_for(equation, inputs, first.logs)
            )
        out.terms = first.terms if out.is_scalar else None
        if out.is_scalar and first.branches is not None and name != "abs":
            out.branches, out.site = first.branches, first.site
    elif name in ("mul", "div"):
        _follow_product(name, inputs, out)
    elif name in ("add", "add_any") and out.is_scalar:
        if all(value.varies for value in inputs) or any(
            value.logs is not None or value.terms is not None for value in inputs
        ):
            out.terms = jnp.concatenate([value.log_terms() for value in inputs])
    elif name == "dot_general" and out.is_scalar:
        if any(value.logs is not None for value in inputs):
            out.terms = inputs[0].log_terms() + inputs[1].log_terms()
    elif name == "reduce_sum" and first.logs is not None:
        is_whole = out.is_scalar and not first.is_scalar
        out.terms = jnp.ravel(first.logs) if is_whole else None


def _follow_product(name: str, inputs: list[Value], out: Value) -> None:
    first, second = inputs
    pairs = [(first, second), (second, first)]
    for one, other in pairs if name == "mul" else pairs[:1]:
        factor = jnp.log(jnp.abs(other.array))
        factor = factor if name == "mul" else -factor
        if one.logs is not None:
            out.logs = one.logs + factor
        if one.terms is not None and out.is_scalar:
            out.terms = one.terms + jnp.ravel(factor)[0]


def _adds_two(equation: Any) -> bool:
    """Whether an equation is ``jnp.logaddexp``, which is no sum in the program."""
    inner = equation.params.get("call_jaxpr")
    if not isinstance(inner, core.ClosedJaxpr) or len(equation.invars) != 2:
        return False
    return {"max", "abs", "exp", "log1p"} <= {e.primitive.name for e in inner.eqns}


def _can_be_unrolled(equation: Any) -> bool:
    """Whether a loop is short and may choose among branches."""
    length, body = equation.params["length"], equation.params["jaxpr"].jaxpr
    if length > _LONGEST or length * len(body.eqns) > _LARGEST:
        return False
    return any(
        (_adds_two(inner) or inner.primitive.name in _BRANCHING)
        and inner.outvars[0].aval.size == 1
        for inner in body.eqns
    )


def _output_for(equation: Any, inputs: list[Value], array: Array) -> Array:
    """Output of an equation for another first input."""
    return _bound(equation, [array, *(value.array for value in inputs[1:])])[0]


def _is_minus_infinity(array: Any) -> bool:
    """Whether an array is known to be one minus infinity before the program runs."""
    if isinstance(array, jax.core.Tracer) or np.size(array) != 1:
        return False
    return bool(np.all(np.isneginf(np.asarray(array, float))))


def _bound(equation: Any, inputs: list[Any]) -> list[Any]:
    """Outputs of one equation, derivative rules of its own included."""
    bound = equation.primitive.get_bind_params(equation.params)
    # Before JAX 0.9 with functions beside the parameters.
    functions, params = ((), bound) if isinstance(bound, dict) else bound
    outputs = equation.primitive.bind(*functions, *inputs, **params)
    return list(outputs) if equation.primitive.multiple_results else [outputs]
