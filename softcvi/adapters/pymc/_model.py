"""Targets made from PyMC models."""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.adapters.pymc._graphs import PyMCGraphs, make_graphs
from softcvi.targets import AbstractSpace, SpaceOfModel, Structure


class PyMCSpace(AbstractSpace):
    """The unconstrained space of a PyMC model, by PyMC's own transforms.

    Args:
        graphs: The model's graphs as JAX functions.
    """

    graphs: PyMCGraphs = eqx.field(static=True)

    def stored(self) -> SpaceOfModel:
        return SpaceOfModel()

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        *x, log_det = _run(self.graphs.to_model, self.graphs.names, u)
        return dict(zip(self.graphs.names, x, strict=True)), log_det

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        values = _run(self.graphs.from_model, self.graphs.names, x)
        u = dict(zip(self.graphs.names, values, strict=True))
        return u, -self.to_model_and_log_det(u)[1]


class PyMCTarget(AbstractModelTarget):
    """The posterior of a PyMC model; made by ``from_pymc``.

    Attributes:
        graphs: The model's graphs as JAX functions.
        start: PyMC's initial point, in the fitting space.

    Example:
        >>> import pymc as pm
        >>> from softcvi.adapters import from_pymc
        >>> with pm.Model() as model:
        ...     mu = pm.Normal("mu", 0, 5)
        >>> from_pymc(model).structure
        Structure(mu: ())
    """

    graphs: PyMCGraphs = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    space: PyMCSpace
    start: dict[str, Array]
    has_gradient: bool = eqx.field(static=True)

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        (value,) = _run(self.graphs.log_density, self.graphs.names, particle)
        return value

    def initial_particle(self, key: PRNGKeyArray) -> dict[str, Array]:
        # PyMC's own habit: its initial point, jittered by one either way.
        keys = jax.random.split(key, len(self.start))
        return {
            name: value + jax.random.uniform(k, value.shape, value.dtype, -1, 1)
            if jnp.issubdtype(value.dtype, jnp.floating)
            else value
            for k, (name, value) in zip(keys, self.start.items(), strict=True)
        }

    def describe(self, x: dict) -> dict[str, Array]:
        if not self.graphs.derived_names:
            return x
        u, _ = self.space.from_model_and_log_det(x)
        values = _run(self.graphs.derived, self.graphs.names, u)
        return {**x, **dict(zip(self.graphs.derived_names, values, strict=True))}

    def observed_data(self) -> dict[str, np.ndarray]:
        return dict(self.graphs.observed)

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        u, _ = self.space.from_model_and_log_det({n: x[n] for n in self.graphs.names})
        values = _run(self.graphs.log_likelihood, self.graphs.names, u)
        return dict(zip(self.graphs.observed, values, strict=True))

    def dims(self) -> dict[str, list[str]]:
        return {name: list(dims) for name, dims in self.graphs.dims.items()}

    def coords(self) -> dict[str, np.ndarray]:
        return dict(self.graphs.coords)


def from_pymc(model: Any) -> PyMCTarget:
    """The posterior of a PyMC model.

    Fitted on PyMC's unconstrained space; draws come back under the names of the model
    and in its own coordinates, ``Deterministic``s included. ``pm.Data`` containers are
    read when this is called: after ``pm.set_data``, call it again. JAX's float64
    switch, which PyMC flips when its JAX part is imported, is put back.

    Args:
        model: A ``pymc.Model``.

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
    pymc = require("pymc", "pymc")
    if not isinstance(model, pymc.Model):
        raise TypeError(f"model: expected a pymc.Model; got {type(model).__name__}.")
    if not model.free_RVs:
        raise ValueError("model: has no free random variable.")
    with jax_settings_kept():
        jax_module = require("pymc.sampling.jax", "pymc")
    graphs = make_graphs(model, jax_module.get_jaxified_graph)
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
    target = PyMCTarget(
        graphs=graphs,
        structure=structure,
        space=PyMCSpace(graphs),
        start=start,
        has_gradient=structure.is_continuous,
    )
    _check_sign_and_jacobian(model, target, point)
    return target


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


def _run(function: Callable, names: tuple[str, ...], values: dict) -> list[Array]:
    arrays = [jnp.asarray(values[name]) for name in names]
    with warnings.catch_warnings():
        # PyMC's graphs ask for doubles everywhere; in single precision they get floats.
        warnings.filterwarnings("ignore", "Explicitly requested dtype")
        return list(function(*arrays))


def _check_sign_and_jacobian(model: Any, target: PyMCTarget, point: dict) -> None:
    """What JAX computes must be PyMC's log density with its Jacobian, not minus it."""
    with_jacobian, without = target.graphs.reference(point)
    value = float(target.log_density(target.start))
    _, log_det = target.space.to_model_and_log_det(target.start)
    for name, ours, theirs in (
        ("log density", value, with_jacobian),
        ("log Jacobian", float(log_det), with_jacobian - without),
    ):
        if np.isfinite(theirs) and not np.isclose(ours, theirs, rtol=1e-3, atol=1e-3):
            raise RuntimeError(
                f"model: the {name} at PyMC's initial point is {ours:.6g} through JAX "
                f"and {theirs:.6g} through PyMC; this version of PyMC "
                f"({require('pymc', 'pymc').__version__}) is not supported."
            )
