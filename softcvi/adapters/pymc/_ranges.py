"""Which values the discrete variables of a PyMC model can take."""

from collections.abc import Callable
from typing import Any

import numpy as np

from softcvi.adapters._extras import require


def discrete_ranges(model: Any) -> dict[str, tuple[int, int]]:
    """Smallest value and number of values of the discrete variables, where constant.

    Only what bounds a variable must be constant: the probabilities of a
    ``Categorical`` may depend on other variables, the ``n`` of a ``Binomial`` not.
    Where elements have ranges of their own, it is one range around all of them.

    Args:
        model: The PyMC model.
    """
    found = {}
    for rv in model.free_RVs:
        if rv.dtype.startswith(("int", "uint", "bool")):
            low, high = _bounds(model, rv.owner, rv.owner.op)
            if np.isfinite(low) and np.isfinite(high):
                found[rv.name] = (int(low), int(high - low) + 1)
    return found


def depends_on_variables(model: Any, variables: list) -> bool:
    """Whether something depends on random variables of the model.

    Args:
        model: The PyMC model.
        variables: PyTensor expressions.
    """
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    return bool(set(model.basic_RVs) & set(ancestors(variables)))


def _bounds(model: Any, node: Any, op: Any) -> tuple[float, float]:
    base = getattr(op, "base_rv_op", None)
    if base is not None:
        # A truncated variable: the parameters of its base, then both ends.
        node_of_base = base.make_node(*node.inputs[:-2])
        low, high = _bounds(model, node_of_base, base)
        lower, upper = (_known(model, end) for end in node.inputs[-2:])
        low = low if lower is None else max(low, np.ceil(np.min(lower)))
        high = high if upper is None else min(high, np.floor(np.max(upper)))
        return low, high
    reader = _READERS.get(str(getattr(op, "name", None)))
    if reader is None:
        return -np.inf, np.inf
    return reader(model, op.dist_params(node))


def _known(model: Any, variable: Any) -> np.ndarray | None:
    if depends_on_variables(model, [variable]):
        return None
    return np.asarray(variable.eval())


def _largest(model: Any, variable: Any) -> float:
    value = _known(model, variable)
    return np.inf if value is None else float(np.max(value))


def _uniform(model: Any, parameters: list) -> tuple[float, float]:
    low, high = (_known(model, each) for each in parameters)
    if low is None or high is None:
        return -np.inf, np.inf
    return float(np.min(low)), float(np.max(high))


def _categorical(model: Any, parameters: list) -> tuple[float, float]:
    (probabilities,) = parameters
    size = probabilities.type.shape[-1]
    if size is None:
        # How many there are does not depend on what they are.
        size = int(probabilities.shape[-1].eval())
    return 0.0, size - 1.0


def _hypergeometric(model: Any, parameters: list) -> tuple[float, float]:
    good, _, number = parameters
    return 0.0, min(_largest(model, good), _largest(model, number))


# By the names of PyTensor's random operations.
_READERS: dict[str, Callable] = {
    "bernoulli": lambda model, parameters: (0.0, 1.0),
    "categorical": _categorical,
    "discrete_uniform": _uniform,
    "binomial": lambda model, parameters: (0.0, _largest(model, parameters[0])),
    "beta_binomial": lambda model, parameters: (0.0, _largest(model, parameters[0])),
    "hypergeometric": _hypergeometric,
    # Without an end, which a truncation gives them.
    "poisson": lambda model, parameters: (0.0, np.inf),
    "negative_binomial": lambda model, parameters: (0.0, np.inf),
}
