"""Terms of a log density that is the log of a sum, each to be climbed by itself.

A narrow mode far from a wide one is out of reach of every start: nothing that can be
computed outside of its small basin tells of it. But the program of the log density
does. Where it has the log of a sum of exponentials, as a mixture or a discrete
parameter that was summed out has, each term is a density that can be climbed alone,
and its maximum is a place to start from.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jaxtyping import Array, Float, Int, PyTree, Scalar

from softcvi._compile import rarely_run
from softcvi.starts._double import Density
from softcvi.starts._newton import LocalNormal, newton_path
from softcvi.targets import AbstractTarget
from softcvi.targets._wrapper import AbstractWrapper

_CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint")
# Operations that act alike on numbers and on their logs.
_ALIKE = (
    "abs",
    "broadcast_in_dim",
    "convert_element_type",
    "copy",
    "reshape",
    "squeeze",
    "transpose",
)
# Choice of a site that keeps its whole sum.
_WHOLE = -1


class TermTarget(AbstractWrapper):
    """A target with some sums of its log density replaced by one of their terms.

    Attributes:
        target: The target.
        choice: For each sum the number of the term, or -1 for the whole sum.
    """

    target: AbstractTarget
    choice: Int[Array, " s"]

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        return _Evaluation(self.choice).of(self.target, particle)


def terms_of(target: AbstractTarget, particle: PyTree) -> tuple[int, ...]:
    """Number of terms of each sum, zero for those that are no part of the density.

    Args:
        target: The target.
        particle: Any particle of finite density.
    """
    evaluation = _Evaluation(None)
    eqx.filter_eval_shape(lambda p: evaluation.of(target, p), particle)
    counts = np.array(evaluation.counts, int)
    if not len(counts):
        return ()
    slopes = _slopes(particle, jnp.zeros(len(counts)), target)
    # The normaliser of a softmax enters with a minus.
    return tuple(np.where(np.asarray(slopes) > 0, counts, 0).tolist())


@functools.partial(rarely_run, effort=0)
def _slopes(particle: PyTree, shifts: Float[Array, " s"], target: AbstractTarget):
    whole = jnp.full(shifts.shape, _WHOLE, jnp.int32)
    return jax.grad(lambda s: _Evaluation(whole, s).of(target, particle))(shifts)


def choices(
    rng: np.random.Generator, counts: tuple[int, ...], most: int
) -> Int[np.ndarray, "b s"]:
    """Which terms to climb: each one alone, as many as are wanted.

    Args:
        rng: Random generator.
        counts: Number of terms of each sum.
        most: Number of choices at most.
    """
    rows = []
    for site, count in enumerate(counts):
        for term in range(count):
            row = np.full(len(counts), _WHOLE)
            row[site] = term
            rows.append(row)
    if len(rows) > most:
        rows = [rows[i] for i in np.sort(rng.permutation(len(rows))[:most])]
    return np.array(rows, np.int32).reshape(len(rows), len(counts))


@functools.partial(rarely_run, effort=0)
def ascend_terms(
    starts: Float[Array, "b d"], choices: Int[Array, "b s"], density: Density
) -> LocalNormal:
    """Climb from each start the sum's term that is chosen for it."""

    def climb(start, choice):
        term = TermTarget(density.target, choice)
        return newton_path(eqx.tree_at(lambda d: d.target, density, term), start)

    return jax.vmap(climb)(starts, choices)


class _Evaluation:
    """One evaluation of a log density in which logs of sums are told apart.

    Args:
        choice: Terms, one for each sum; None to count the sums only.
        shifts: Numbers to add to the sums, for derivatives.
    """

    def __init__(self, choice: Array | None, shifts: Array | None = None):
        self.choice = choice
        self.shifts = shifts
        self.counts: list[int] = []

    def of(self, target: AbstractTarget, particle: PyTree) -> Scalar:
        leaves, tree = jax.tree_util.tree_flatten(particle)

        def plain(*leaves):
            return target.log_density(jax.tree_util.tree_unflatten(tree, leaves))

        program = jax.make_jaxpr(plain)(*leaves)
        inputs = [_Value(leaf, varies=True) for leaf in leaves]
        return self._run(program.jaxpr, program.consts, inputs)[0].array

    def _run(self, jaxpr: Any, consts: Any, inputs: list["_Value"]) -> list["_Value"]:
        values: dict[Any, _Value] = {}

        def read(atom):
            return _Value(atom.val) if isinstance(atom, core.Literal) else values[atom]

        constants = [_Value(const) for const in consts]
        values.update(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, inputs, strict=True))
        for equation in jaxpr.eqns:
            outputs = self._outputs(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _outputs(self, equation: Any, inputs: list["_Value"]) -> list["_Value"]:
        name = equation.primitive.name
        if name in _CALLS and "jaxpr" in equation.params:
            inner = equation.params["jaxpr"]
            if isinstance(inner, core.ClosedJaxpr):
                return self._run(inner.jaxpr, inner.consts, inputs)
            return self._run(inner, (), inputs)
        outputs = _bound(equation, [value.array for value in inputs])
        varies = any(value.varies for value in inputs)
        made = [_Value(output, varies) for output in outputs]
        if not varies or len(made) != 1:
            return made
        out = made[0]
        if name == "log" and inputs[0].terms is not None:
            return [self._chosen(out, inputs[0].terms)]
        # One constant argument makes it a soft maximum, not a sum of densities.
        is_sum = _adds_two(equation) and all(value.varies for value in inputs)
        if is_sum and out.array.size == 1:
            pair = jnp.stack([jnp.ravel(v.array)[0] for v in inputs])
            return [self._chosen(out, pair)]
        _follow(equation, inputs, out)
        return [out]

    def _chosen(self, whole: "_Value", terms: Float[Array, " n"]) -> "_Value":
        site = len(self.counts)
        self.counts.append(terms.size)
        array = whole.array
        if self.choice is not None:
            pick = self.choice[site]
            term = jnp.take(terms, jnp.maximum(pick, 0)).reshape(array.shape)
            array = jnp.where(pick == _WHOLE, array, term.astype(array.dtype))
        if self.shifts is not None:
            array = array + self.shifts[site].astype(array.dtype)
        return _Value(array, varies=True)


class _Value:
    """An array of a program, with its logs where these are known.

    Args:
        array: The array.
        varies: Whether it depends on the parameters.
    """

    def __init__(self, array: Any, varies: bool = False):
        self.array = array
        self.varies = varies
        # Its logs, where it is an exponential.
        self.logs: Any = None
        # Logs of the terms, where it is a sum of exponentials.
        self.terms: Any = None


def _follow(equation: Any, inputs: list[_Value], out: _Value) -> None:
    """Keep the logs of exponentials through products, reshaping and a sum."""
    name, first = equation.primitive.name, inputs[0]
    if name == "exp":
        out.logs = first.array
    elif name in _ALIKE:
        if first.logs is not None:
            # The log of an absolute value is that of the number itself here.
            alike = name == "abs"
            out.logs = first.logs if alike else _bound(equation, [first.logs])[0]
        out.terms = first.terms if out.array.size == 1 else None
    elif name in ("mul", "div"):
        pairs = [(first, inputs[1])]
        pairs += [(inputs[1], first)] if name == "mul" else []
        for one, other in pairs:
            factor = jnp.log(jnp.abs(other.array))
            factor = factor if name == "mul" else -factor
            if one.logs is not None:
                out.logs = one.logs + factor
            if one.terms is not None and out.array.size == 1:
                out.terms = one.terms + jnp.ravel(factor)[0]
    elif name == "reduce_sum" and first.logs is not None:
        is_whole = out.array.size == 1 < first.array.size
        out.terms = jnp.ravel(first.logs) if is_whole else None


def _adds_two(equation: Any) -> bool:
    """Whether an equation is ``jnp.logaddexp``, which is no sum in the program."""
    inner = equation.params.get("call_jaxpr")
    if not isinstance(inner, core.ClosedJaxpr) or len(equation.invars) != 2:
        return False
    return {"max", "abs", "exp", "log1p"} <= {e.primitive.name for e in inner.eqns}


def _bound(equation: Any, inputs: list[Any]) -> list[Any]:
    """Outputs of one equation, derivative rules of its own included."""
    bound = equation.primitive.get_bind_params(equation.params)
    # Before JAX 0.9 with functions beside the parameters.
    functions, params = ((), bound) if isinstance(bound, dict) else bound
    outputs = equation.primitive.bind(*functions, *inputs, **params)
    return list(outputs) if equation.primitive.multiple_results else [outputs]
