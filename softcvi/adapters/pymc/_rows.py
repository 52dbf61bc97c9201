"""PyMC models with many rows of data: their terms as a function of some of the rows.

What depends on no variable is computed once, and its arrays of one length are the
rows: data as they are, and what the model makes of them. What depends on no row is
computed once for all blocks.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from softcvi.adapters import _row_blocks
from softcvi.adapters._extras import require
from softcvi.adapters._row_blocks import RowBlocks, are_one_by_one, row_blocks
from softcvi.adapters.pymc._quiet import quietly

_SEED = 20_26


class RowTerms:
    """Log densities of observed variables, and potentials, with a term for each row.

    Args:
        names: Their names.
        shared: From values of all variables to what every row needs of them.
        of_rows: From this and some rows to the terms of each name.
    """

    def __init__(self, names: tuple[str, ...], shared: Callable, of_rows: Callable):
        self.names = names
        self.shared = shared
        self.of_rows = of_rows

    def at(self, values: list) -> Callable[[list], dict[str, Array]]:
        """The terms of some rows, as a function of these.

        Args:
            values: Values of all variables.
        """
        shared = quietly(self.shared, *values)

        def terms_of(rows: list) -> dict[str, Array]:
            terms = quietly(self.of_rows, *shared, *rows)
            return dict(zip(self.names, terms, strict=True))

        return terms_of


def rows_of(model: Any, jaxify: Callable) -> tuple[RowTerms, RowBlocks] | None:
    """The rows of a model's data; None where they are few, or not one by one.

    Args:
        model: The PyMC model.
        jaxify: PyMC's translator of graphs.
    """
    if _largest(model) < _row_blocks.MANY_ROWS:
        return None
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    point = _trial_point(model)
    try:
        split = _split_terms(model, values)
        if split is None or any(split.count in array.shape for array in point):
            return None  # without rows, or each with variables of its own
        terms = split.translated(values, jaxify)
        blocks = row_blocks(split.rows, split.names, split.count)
        return (terms, blocks) if are_one_by_one(blocks, terms.at(point)) else None
    except Exception:
        return None  # the graph has the number of rows built in


class _Split:
    """Graphs of terms as functions of some rows, and the rows themselves."""

    def __init__(self, names: list[str], terms: list, inputs: list, rows: list):
        self.names = tuple(names)
        self.terms = terms
        self.inputs = inputs
        self.rows = rows
        self.count = rows[0].shape[0]

    def translated(self, values: list, jaxify: Callable) -> RowTerms:
        """Both parts as JAX functions."""
        shared = _edge(self.terms, self.inputs, of_moving=False)
        given = [variable.type() for variable in shared]
        terms = _replaced(self.terms, dict(zip(shared, given, strict=True)))
        return RowTerms(
            self.names,
            jaxify(inputs=values, outputs=shared),
            jaxify(inputs=[*given, *self.inputs], outputs=terms),
        )


def _split_terms(model: Any, values: list) -> _Split | None:
    """The terms that depend on rows, with these as inputs."""
    pytensor = require("pytensor.tensor", "pymc")
    variables = [*model.observed_RVs, *model.potentials]
    graphs = model.logp(variables, sum=False)
    fixed = _edge(graphs, values, of_moving=True)
    arrays = _evaluated(fixed)
    count = max((n for array in arrays for n in array.shape), default=0)
    if count < _row_blocks.MANY_ROWS:
        return None
    replacements: dict[Any, Any] = {}
    inputs, rows = [], []
    lengths = []
    for variable, array in zip(fixed, arrays, strict=True):
        if array.dtype.kind == "i" and array.shape == () and array == count:
            lengths.append(variable)
        elif count not in array.shape:
            if variable.owner is not None:
                constant = pytensor.constant(array, dtype=array.dtype)
                replacements[variable] = constant
        else:
            axis = array.shape.index(count)
            rows.append(np.moveaxis(array, axis, 0))
            shape = (None, *rows[-1].shape[1:])
            inputs.append(pytensor.tensor(dtype=array.dtype, shape=shape))
            replacements[variable] = pytensor.moveaxis(inputs[-1], 0, axis)
    # Where an array is made for all rows, or is used as a number and tried out as such.
    replacements |= dict.fromkeys(lengths, inputs[0].shape[0])
    graphs = _replaced(graphs, replacements)
    names, terms = [], []
    for variable, graph in zip(variables, graphs, strict=True):
        if graph.ndim and _depends(graph, inputs):
            names.append(variable.name)
            terms.append(graph.sum(axis=tuple(range(1, graph.ndim))))
    return _Split(names, terms, inputs, rows) if names else None


def _replaced(graphs: list, replacements: dict[Any, Any]) -> list:
    """Graphs with other variables in some places, whatever the lengths of these.

    PyTensor's own functions insist on the shapes that variables have had.
    """
    toposort = require("pytensor.graph.traversal", "pymc").toposort
    new = dict(replacements)
    for node in toposort(graphs):
        inputs = [new.get(variable, variable) for variable in node.inputs]
        if inputs != node.inputs:
            copy = node.clone_with_new_inputs(inputs, strict=False)
            pairs = zip(node.outputs, copy.outputs, strict=True)
            new |= {old: other for old, other in pairs if old not in replacements}
    return [new.get(graph, graph) for graph in graphs]


def _edge(graphs: list, moving: list, of_moving: bool) -> list:
    """What does not move, and is used by something that does.

    Args:
        graphs: The graphs to look through.
        moving: Variables that move, and with them all that depends on them.
        of_moving: Whether constants count.
    """
    traversal = require("pytensor.graph.traversal", "pymc")
    constant = require("pytensor.graph.basic", "pymc").Constant
    moved = set(moving)
    found: dict[Any, None] = {}
    for node in traversal.toposort(graphs):
        if moved.isdisjoint(node.inputs):
            continue
        moved.update(node.outputs)
        for variable in node.inputs:
            if variable not in moved and (
                of_moving or not isinstance(variable, constant)
            ):
                found[variable] = None
    return list(found)


def _evaluated(variables: list) -> list[np.ndarray]:
    """Values of what depends on no variable of the model."""
    pytensor = require("pytensor", "pymc")
    basic = require("pytensor.graph.basic", "pymc")
    shared = require("pytensor.compile.sharedvalue", "pymc").SharedVariable
    found: dict[Any, Any] = {}
    for variable in variables:
        if isinstance(variable, basic.Constant):
            found[variable] = variable.data
        elif isinstance(variable, shared):
            found[variable] = variable.get_value(borrow=True)
    rest = [variable for variable in variables if variable not in found]
    if rest:
        computed = pytensor.function([], rest, mode="FAST_COMPILE")()
        found |= dict(zip(rest, computed, strict=True))
    return [np.asarray(found[variable]) for variable in variables]


def _depends(graph: Any, inputs: list) -> bool:
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    return not set(inputs).isdisjoint(ancestors([graph]))


def _largest(model: Any) -> int:
    """The number of rows of the largest data."""
    variables = [*model.observed_RVs, *model.potentials]
    if not variables:
        return 0
    basic = require("pytensor.graph.basic", "pymc")
    shared = require("pytensor.compile.sharedvalue", "pymc").SharedVariable
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    leaves = ancestors([*variables, *(model.rvs_to_values[v] for v in model.basic_RVs)])
    shapes = [
        np.shape(v.data if isinstance(v, basic.Constant) else v.get_value(borrow=True))
        for v in leaves
        if isinstance(v, basic.Constant | shared)
    ]
    return max((n for shape in shapes for n in shape), default=0)


def _trial_point(model: Any) -> list[Array]:
    """PyMC's initial point with some noise, so that no term drops out by chance."""
    rng = np.random.default_rng(_SEED)
    point = model.initial_point()
    values = [np.asarray(point[model.rvs_to_values[v].name]) for v in model.free_RVs]
    return [
        jnp.asarray(
            value + (rng.uniform(-1, 1, value.shape) if value.dtype.kind == "f" else 0)
        )
        for value in values
    ]
