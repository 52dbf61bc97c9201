"""The data of a PyMC model: all of its rows, as they were when it was read."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from softcvi.adapters._extras import require


def with_all_rows(model: Any) -> Any:
    """The same model where ``pm.Minibatch`` passes on all the rows that it has.

    A mini-batch is another log density at every call, for which soft labels are
    biased. ``total_size`` then scales by one, as it must.

    Args:
        model: The PyMC model; one without mini-batches is returned as it is.
    """
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    drawn = {
        variable
        for variable in ancestors([model.logp()])
        if variable.owner and type(variable.owner.op).__name__ == "MinibatchOp"
    }
    if not drawn:
        return model
    rows = {int(each.owner.inputs[0].shape[0].eval()) for each in drawn}
    warnings.warn(
        f"model: pm.Minibatch is set aside, and every step sees all of the "
        f"{max(rows)} rows, for mini-batches bias soft labels. For data that do not "
        "fit, write the likelihood as softcvi.targets.DataTarget.",
        stacklevel=3,
    )
    return _without_minibatches(model)


def _without_minibatches(model: Any) -> Any:
    graphs = require("pymc.model.fgraph", "pymc")
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    replace = require("pytensor.graph.replace", "pymc").clone_replace
    function_graph = require("pytensor.graph", "pymc").FunctionGraph
    initial = model.rvs_to_initial_values
    try:
        # PyMC translates no model with initial values; they are put back below.
        model.rvs_to_initial_values = dict.fromkeys(initial)
        old, _ = graphs.fgraph_from_model(model)
    finally:
        model.rvs_to_initial_values = initial
    replacements = {}
    for variable in ancestors(old.outputs):
        node = variable.owner
        if node and type(node.op).__name__ == "MinibatchOp":
            # Its inputs and outputs pair up; the last of them is the generator.
            replacements[variable] = node.inputs[node.outputs.index(variable)]
    outputs = replace(old.outputs, replace=replacements, rebuild_strict=False)
    for before, after in zip(old.outputs, outputs, strict=True):
        after.name = before.name
    new = function_graph(outputs=outputs, clone=False)
    new._coords, new._dim_lengths = old._coords, old._dim_lengths
    whole = graphs.model_from_fgraph(new, mutate_fgraph=True)
    for rv, value in initial.items():
        whole.rvs_to_initial_values[whole[rv.name]] = value
    return whole


class Reading(NamedTuple):
    """What ``pm.set_data`` and ``set_dim`` may change of a model.

    Attributes:
        data: Values of the data containers by name.
        dims: Length and coordinates of the dimensions by name.
    """

    data: dict[str, np.ndarray]
    dims: dict[str, tuple[int, Any]]

    @classmethod
    def of(cls, model: Any) -> "Reading":
        """What a model holds now."""
        data = {each.name: np.array(each.get_value()) for each in model.data_vars}
        dims = {
            name: (int(length.get_value()), model.coords.get(name))
            for name, length in model.dim_lengths.items()
            if hasattr(length, "set_value")
        }
        return cls(data, dims)

    def put_into(self, model: Any) -> None:
        """Make a model hold this."""
        for name, value in self.data.items():
            model[name].set_value(value)
        for name, (length, values) in self.dims.items():
            model.set_dim(name, length, values)


@contextlib.contextmanager
def as_it_was(model: Any, reading: Reading) -> Iterator[None]:
    """The model with the data that it was fitted to, for as long as this lasts.

    Args:
        model: The PyMC model.
        reading: What it held then.
    """
    now = Reading.of(model)
    reading.put_into(model)
    try:
        yield
    finally:
        now.put_into(model)
