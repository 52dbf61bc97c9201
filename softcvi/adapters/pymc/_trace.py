"""Draws in the container that PyMC's own functions take."""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from softcvi.adapters._extras import require


def as_trace(groups: dict[str, Any]) -> Any:
    """Datasets by group as an InferenceData (PyMC 5) or a DataTree (PyMC 6).

    Args:
        groups: xarray datasets by the name of their group.
    """
    with warnings.catch_warnings():
        # Old releases announce the new ones when they are imported.
        warnings.simplefilter("ignore")
        arviz = require("arviz", "pymc")
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(**groups)
    xarray = require("xarray", "pymc")
    return xarray.DataTree.from_dict(groups)


def draws_for_pymc(graphs: Any, draws: dict) -> Any:
    """The free variables, with coordinates and constant data.

    PyMC draws a variable anew where dimensions or data of its own differ from those
    that it finds beside the draws, or are absent there.
    """
    posterior = {name: np.asarray(draws[name])[None] for name in graphs.names}
    groups = {"posterior": _dataset(graphs, posterior, ("chain", "draw"))}
    if graphs.constants:
        groups["constant_data"] = _dataset(graphs, graphs.constants, ())
    return as_trace(groups)


@contextlib.contextmanager
def without_messages() -> Iterator[None]:
    """PyMC logs which variables it samples, which is not wanted here."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _dataset(graphs: Any, arrays: dict[str, np.ndarray], leading: tuple) -> Any:
    xarray = require("xarray", "pymc")
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, value in arrays.items():
        own = np.ndim(value) - len(leading)
        given = graphs.dims.get(name, (None,) * own)
        axes = [dim or f"{name}_dim_{i}" for i, dim in enumerate(given)]
        variables[name] = ([*leading, *axes], value)
        coords |= {dim: graphs.coords[dim] for dim in axes if dim in graphs.coords}
    return xarray.Dataset(variables, coords=coords)
