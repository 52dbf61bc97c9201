"""The graphs of a PyMC model as JAX functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from softcvi.adapters._extras import require
from softcvi.adapters.pymc._data import Reading
from softcvi.adapters.pymc._decentre import standardisings
from softcvi.adapters.pymc._ranges import depends_on_variables, discrete_ranges
from softcvi.adapters.pymc._rows import RowTerms
from softcvi.adapters.pymc._standardising import AbstractStandardising


class PyMCGraphs:
    """JAX functions of a PyMC model, each on the free variables in order.

    Args:
        model: The model.
        names: Names of the free random variables.
        log_density: Unconstrained values to the log density, Jacobian included, in
            parts: that of each variable of ``standardisings``, and of all the rest but
            ``row_terms``.
        to_model: Unconstrained values to the model's, and the log Jacobian.
        from_model: The model's values to unconstrained ones.
        derived: Unconstrained values to the deterministics.
        derived_names: Their names.
        log_likelihood: Unconstrained values to pointwise log likelihoods.
        observed: Observed data by name.
        constants: Values of data containers and of deterministics that depend on no
            random variable, by name.
        reference: PyMC's own log density at a point, with and without Jacobian.
        standardisings: Variables that can be fitted in non-centred coordinates.
        ranges: Smallest value and number of values of discrete variables.
        dims: Names of dimensions by variable.
        coords: Coordinates by dimension.
        reading: Data containers and dimensions as they are now.
        row_terms: Log densities that are evaluated in blocks of rows; None where none
            are.
    """

    def __init__(self, **parts: Any):
        self.model: Any = parts["model"]
        self.names: tuple[str, ...] = parts["names"]
        self.log_density: Callable = parts["log_density"]
        self.to_model: Callable = parts["to_model"]
        self.from_model: Callable = parts["from_model"]
        self.derived: Callable = parts["derived"]
        self.derived_names: tuple[str, ...] = parts["derived_names"]
        self.log_likelihood: Callable = parts["log_likelihood"]
        self.observed: dict[str, np.ndarray] = parts["observed"]
        self.constants: dict[str, np.ndarray] = parts["constants"]
        self.reference: Callable = parts["reference"]
        self.standardisings: tuple[AbstractStandardising, ...] = parts["standardisings"]
        self.ranges: dict[str, tuple[int, int]] = parts["ranges"]
        self.dims: dict[str, tuple] = parts["dims"]
        self.coords: dict[str, np.ndarray] = parts["coords"]
        self.reading: Reading = parts["reading"]
        self.row_terms: RowTerms | None = parts["row_terms"]


def make_graphs(
    model: Any, jaxify: Callable, row_terms: RowTerms | None = None
) -> PyMCGraphs:
    """Translate what is needed of a model.

    Args:
        model: The PyMC model.
        jaxify: PyMC's translator of graphs.
        row_terms: What is evaluated in blocks of rows.
    """
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    observed = {
        rv.name: np.asarray(model.rvs_to_values[rv].eval()) for rv in model.observed_RVs
    }
    pointwise = model.logp(model.observed_RVs, sum=False) if observed else []
    moving, fixed = _split_deterministics(model)
    deterministics = model.replace_rvs_by_values(moving)
    standards = standardisings(model, values, jaxify)
    in_blocks = () if row_terms is None else row_terms.names
    parts = _log_density_parts(model, [each.name for each in standards], in_blocks)
    return PyMCGraphs(
        model=model,
        names=tuple(rv.name for rv in model.free_RVs),
        log_density=jaxify(inputs=values, outputs=parts),
        to_model=jaxify(inputs=values, outputs=_to_model(model, values)),
        from_model=_from_model(model, jaxify),
        derived=jaxify(inputs=values, outputs=deterministics),
        derived_names=tuple(v.name for v in moving),
        log_likelihood=jaxify(inputs=values, outputs=pointwise),
        observed=observed,
        constants=_constants(model, fixed),
        reference=model.compile_fn(
            [model.logp(), model.logp(jacobian=False)],
            inputs=values,
            mode="FAST_COMPILE",
        ),
        standardisings=standards,
        ranges=discrete_ranges(model),
        dims=dict(model.named_vars_to_dims),
        coords={k: np.asarray(v) for k, v in model.coords.items() if v is not None},
        reading=Reading.of(model),
        row_terms=row_terms,
    )


def _log_density_parts(
    model: Any, names: list[str], in_blocks: tuple[str, ...]
) -> list:
    """The log density of each of some variables, and that of all the rest."""
    pytensor = require("pytensor.tensor", "pymc")
    # In PyMC's order of the terms.
    terms = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    terms = [variable for variable in terms if variable.name not in in_blocks]
    apart: dict[str, Any] = {}
    rest = []
    for variable, values in zip(terms, model.logp(terms, sum=False), strict=True):
        total = pytensor.sum(values)
        if variable.name in names:
            apart[variable.name] = total
        else:
            rest.append(total)
    return [*(apart[name] for name in names), pytensor.sum(rest)]


def _split_deterministics(model: Any) -> tuple[list, list]:
    moving = [v for v in model.deterministics if depends_on_variables(model, [v])]
    return moving, [v for v in model.deterministics if v not in moving]


def _constants(model: Any, fixed: list) -> dict[str, np.ndarray]:
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    observed_values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    as_data = set(ancestors(observed_values)) if observed_values else set()
    containers = [v for v in model.data_vars if v not in as_data]
    return {v.name: np.asarray(v.eval()) for v in [*containers, *fixed]}


def _to_model(model: Any, values: list) -> list:
    """Constrained values, and the log Jacobian summed over all of them."""
    pytensor = require("pytensor.tensor", "pymc")
    outputs = model.replace_rvs_by_values(list(model.free_RVs))
    parts = []
    for rv, value in zip(model.free_RVs, values, strict=True):
        transform = model.rvs_to_transforms[rv]
        if transform is not None:
            log_det = transform.log_jac_det(value, *rv.owner.inputs)
            parts.append(pytensor.sum(log_det))
    total = pytensor.sum(pytensor.stack(parts)) if parts else pytensor.constant(0.0)
    (total,) = model.replace_rvs_by_values([total])
    return [*outputs, total]


def _from_model(model: Any, jaxify: Callable) -> Callable:
    """Unconstrained values, where the variables themselves are the inputs."""
    replace = require("pytensor.graph.replace", "pymc").graph_replace
    given = {rv: rv.type(name=f"{rv.name}_given") for rv in model.free_RVs}
    outputs = []
    for rv, value in given.items():
        transform = model.rvs_to_transforms[rv]
        if transform is None:
            outputs.append(value * 1)
        else:
            outputs.append(transform.forward(value, *rv.owner.inputs))
    outputs = replace(outputs, given, strict=False)
    return jaxify(inputs=list(given.values()), outputs=outputs)
