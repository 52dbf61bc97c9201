"""Targets made from PyMC models."""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi.adapters._extras import require
from softcvi.adapters.pymc._data import with_all_rows
from softcvi.adapters.pymc._graphs import make_graphs
from softcvi.adapters.pymc._rows import rows_of
from softcvi.adapters.pymc._special import register_special_functions
from softcvi.adapters.pymc._target import PyMCSpace, PyMCTarget
from softcvi.targets import SpaceOfModel, Structure
from softcvi.targets._derivatives import may_lack_derivatives, num_derivatives


def from_pymc(model: Any, *, decentre: bool = True) -> PyMCTarget:
    """The posterior of a PyMC model, or of a Bambi model.

    Fitted on PyMC's unconstrained space; draws come back under the names of the model
    and in its own coordinates, ``Deterministic``s included. ``pm.Data`` containers are
    read when this is called, for predictions too: after ``pm.set_data``, call it again.
    ``Potential``s and imputed values work as PyMC means them. Of ``pm.Minibatch`` all
    rows are used. Where each of 100,000 rows or more has a term of its own, they are
    evaluated in blocks, in memory of a block. Discrete variables need a range that does
    not depend on other variables; their probabilities may. JAX's float64 switch, which
    PyMC flips when its JAX part is imported, is put back.

    Args:
        model: A ``pymc.Model`` or ``bambi.Model``.
        decentre: Fit variables whose location or scale depends on other variables in
            non-centred coordinates, and normal series by their steps; ``fit`` without
            a guide goes back to centred ones where the data say much. Draws and
            densities are those of the model as it is written.

    Returns:
        A target for ``softcvi.fit``.

    Example:
        >>> import numpy as np, pymc as pm
        >>> from softcvi.adapters import from_pymc
        >>> with pm.Model() as model:
        ...     mu = pm.Normal("mu", 0, 5)
        ...     sigma = pm.HalfNormal("sigma", 2)
        ...     _ = pm.Normal("y", mu, sigma, observed=np.array([1.0, 2.0, 3.0]))
        >>> target = from_pymc(model)
        >>> target.structure
        Structure(mu: (), sigma: ())
        >>> float(target.space.to_model({"mu": 0.0, "sigma": 0.0})["sigma"])
        1.0
    """
    model = as_pymc_model(model)
    if not model.free_RVs:
        raise ValueError("model: has no free random variable.")
    _refuse_simulators(model)
    model = with_all_rows(model)
    with jax_settings_kept():
        jax_module = require("pymc.sampling.jax", "pymc")
    register_special_functions()
    try:
        found = rows_of(model, jax_module.get_jaxified_graph)
        row_terms, rows = (None, None) if found is None else found
        graphs = make_graphs(model, jax_module.get_jaxified_graph, row_terms)
    except NotImplementedError as error:
        raise NotImplementedError(
            f"model: PyMC cannot translate it to JAX ({error}). Its values are enough: "
            "softcvi.adapters.from_callable(model.compile_logp(), "
            "model.initial_point()) is a target on PyMC's unconstrained space."
        ) from error
    point = model.initial_point()
    start = {
        rv.name: jnp.asarray(point[model.rvs_to_values[rv].name])
        for rv in model.free_RVs
    }
    start = {
        name: value.astype(float if value.dtype.kind == "f" else jnp.int32)
        for name, value in start.items()
    }
    structure = Structure(start)
    written = PyMCTarget(
        graphs=graphs,
        structure=structure,
        space=PyMCSpace(graphs),
        start=start,
        has_gradient=structure.is_continuous,
        rows=rows,
    )
    _check_sign_and_jacobian(model, written, point)
    if written.has_gradient and may_lack_derivatives(written.log_density, written.like):
        known = num_derivatives(written.log_density, written.like)
        written = dataclasses.replace(
            written, has_gradient=known > 0, has_hessian=known != 1
        )
    if not decentre or not structure.is_continuous:
        return written
    names = tuple(each.name for each in graphs.standardisings)
    return written.in_space(SpaceOfModel(names))


def as_pymc_model(model: Any) -> Any:
    """The PyMC model itself, of a Bambi model the one that it builds."""
    pymc = require("pymc", "pymc")
    bambi = sys.modules.get("bambi")
    if bambi is not None and isinstance(model, bambi.Model):
        if not model.built:
            model.build()
        return model.backend.model
    if not isinstance(model, pymc.Model):
        raise TypeError(f"model: expected a pymc.Model; got {type(model).__name__}.")
    return model


def _refuse_simulators(model: Any) -> None:
    simulator = require("pymc", "pymc").Simulator.rv_type
    for variable in model.basic_RVs:
        if isinstance(variable.owner.op, simulator):
            raise NotImplementedError(
                f"model: {variable.name!r} is a pm.Simulator, whose likelihood is not "
                "known; softcvi needs one. pm.sample_smc takes such a model as it is."
            )


@contextlib.contextmanager
def jax_settings_kept() -> Iterator[None]:
    """Undo what importing PyMC's JAX part does to JAX: float64, and 100 CPU devices."""
    x64, flags = jax.config.jax_enable_x64, os.environ.get("XLA_FLAGS")
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", x64)
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags


def _check_sign_and_jacobian(model: Any, target: PyMCTarget, point: dict) -> None:
    """What JAX computes must be PyMC's log density with its Jacobian, not minus it."""
    with_jacobian, without = target.graphs.reference(point)
    if not np.isfinite(with_jacobian):
        return  # outside of the support, as PyMC's point of truncated counts can be
    start = target.counted_from_zero(target.start)
    value = float(target.log_density(start))
    _, log_det = target.space.to_model_and_log_det(start)
    for name, ours, theirs in (
        ("log density", value, with_jacobian),
        ("log Jacobian", float(log_det), with_jacobian - without),
    ):
        if not np.isclose(ours, theirs, rtol=1e-3, atol=1e-3):
            raise RuntimeError(
                f"model: the {name} at PyMC's initial point is {ours:.6g} through JAX "
                f"and {theirs:.6g} through PyMC; this version of PyMC "
                f"({require('pymc', 'pymc').__version__}) is not supported."
            )
