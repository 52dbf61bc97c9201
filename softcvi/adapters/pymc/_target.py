"""The posterior of a PyMC model as a target."""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import Prior, space_by_data, standardised_sites
from softcvi.adapters._row_blocks import AbstractRowsTarget, RowBlocks
from softcvi.adapters.pymc._data import as_it_was
from softcvi.adapters.pymc._graphs import PyMCGraphs
from softcvi.adapters.pymc._quiet import quietly
from softcvi.adapters.pymc._standardising import AbstractStandardising
from softcvi.adapters.pymc._trace import draws_for_pymc, without_messages
from softcvi.targets import AbstractSpace, Informed, SpaceOfModel, Structure
from softcvi.targets._derivatives import twice_if_asked


class PyMCSpace(AbstractSpace):
    """The unconstrained space of a PyMC model, by PyMC's own transforms.

    Args:
        graphs: The model's graphs as JAX functions.
        decentred: Names of the variables in standardised coordinates.
        informed: What the data say of these, by name, where that is used.
    """

    graphs: PyMCGraphs = eqx.field(static=True)
    decentred: tuple[str, ...] = eqx.field(static=True, default=())
    informed: Mapping[str, Informed] = eqx.field(default_factory=dict)

    def stored(self) -> SpaceOfModel:
        return SpaceOfModel(self.decentred, self.informed)

    def priors(self, u: dict) -> dict[str, Prior]:
        """Location and scale of standardised variables where their parents are."""
        values, _ = self.to_values(u)
        arrays = [values[name] for name in self.graphs.names]
        return {s.name: quietly(s.prior, arrays) for s in self._standardisings()}

    def to_model_and_log_det(self, u: dict) -> tuple[dict, Scalar]:
        values, log_dets = self.to_values(u)
        *x, log_det = run_graph(self.graphs.to_model, self.graphs.names, values)
        total = sum(log_dets.values(), log_det)
        return dict(zip(self.graphs.names, x, strict=True)), total

    def from_model_and_log_det(self, x: dict) -> tuple[dict, Scalar]:
        found = run_graph(self.graphs.from_model, self.graphs.names, x)
        values = dict(zip(self.graphs.names, found, strict=True))
        u = dict(values)
        for each in self._standardisings():
            u[each.name] = each.backward(
                values[each.name],
                [values[name] for name in self.graphs.names],
                self.informed.get(each.name),
            )
        for name, (low, _) in self.graphs.ranges.items():
            u[name] = values[name] - low
        return u, -self.to_model_and_log_det(u)[1]

    def to_values(self, u: dict) -> tuple[dict, dict[str, Scalar]]:
        """PyMC's value variables, and log Jacobians by standardised variable."""
        values = {name: jnp.asarray(u[name]) for name in self.graphs.names}
        for name, (low, _) in self.graphs.ranges.items():
            values[name] = values[name] + low
        log_dets = {}
        # In the order of the model: parents have their values before their children.
        for each in self._standardisings():
            arrays = [values[name] for name in self.graphs.names]
            data = self.informed.get(each.name)
            values[each.name], log_dets[each.name] = quietly(
                each.forward, values[each.name], arrays, data
            )
        return values, log_dets

    def _standardisings(self) -> list[AbstractStandardising]:
        return [s for s in self.graphs.standardisings if s.name in self.decentred]


class PyMCTarget(AbstractRowsTarget):
    """The posterior of a PyMC model; made by ``from_pymc``.

    Attributes:
        graphs: The model's graphs as JAX functions.
        start: PyMC's initial point, on its unconstrained space.
        rows: Many rows of data, which are evaluated in blocks; None for all at once.
        has_hessian: Whether JAX can differentiate the log density twice; otherwise
            second derivatives are differences of gradients.

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
    rows: RowBlocks | None = None
    has_hessian: bool = eqx.field(static=True, default=True)

    @twice_if_asked
    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        values, log_dets = self.space.to_values(particle)
        arrays = [values[name] for name in self.graphs.names]
        *parts, total = quietly(self.graphs.log_density, *arrays)
        for each, part in zip(self.graphs.standardisings, parts, strict=True):
            if each.name in log_dets:
                u, data = particle[each.name], self.space.informed.get(each.name)
                part = quietly(each.standard_log_prob, u, arrays, data)
            total = total + part
        if self.rows is not None:
            total = total + self.rows.total(self._row_terms(arrays), total.dtype)
        return total

    def initial_particle(self, key: PRNGKeyArray) -> dict[str, Array]:
        # PyMC's own habit: its initial point, jittered by one either way. Standardised
        # variables begin near zero, where their parents say.
        keys = jax.random.split(key, len(self.start))
        decentred = self.space.decentred
        start = {
            name: jnp.zeros_like(value) if name in decentred else value
            for name, value in self.start.items()
        }
        jittered = {
            name: value + jax.random.uniform(k, value.shape, value.dtype, -1, 1)
            if jnp.issubdtype(value.dtype, jnp.floating)
            else value
            for k, (name, value) in zip(keys, start.items(), strict=True)
        }
        return self.counted_from_zero(jittered)

    def initial_point(self) -> dict[str, Array]:
        """PyMC's initial point, in the model's coordinates."""
        as_written = PyMCSpace(self.graphs)
        return as_written.to_model(self.counted_from_zero(self.start))

    def counted_from_zero(self, values: dict) -> dict[str, Array]:
        """PyMC's values, with discrete ones counted from their smallest."""
        lows = {name: low for name, (low, _) in self.graphs.ranges.items()}
        return {
            name: value - lows[name] if name in lows else value
            for name, value in values.items()
        }

    def num_values(self) -> dict[str, int]:
        return {name: size for name, (_, size) in self.graphs.ranges.items()}

    @property
    def standardised(self) -> dict[str, np.ndarray] | None:
        return standardised_sites(self.structure, self.space)

    def recentred(
        self, mean: dict[str, Array], spread: dict[str, Array], draws: Any = None
    ) -> "PyMCTarget | None":
        space = space_by_data(self.space.priors(mean), mean, spread)
        if space.decentred == self.space.decentred and not space.informed:
            return None
        return self.in_space(space)

    def in_space(self, space: AbstractSpace) -> "PyMCTarget":
        if not isinstance(space, SpaceOfModel):
            return self
        chosen = PyMCSpace(self.graphs, space.decentred, space.informed)
        return dataclasses.replace(self, space=chosen)

    def describe(self, x: dict) -> dict[str, Array]:
        if not self.graphs.derived_names:
            return x
        values = self._values_of(x)
        derived = run_graph(self.graphs.derived, self.graphs.names, values)
        return {**x, **dict(zip(self.graphs.derived_names, derived, strict=True))}

    def observed_data(self) -> dict[str, np.ndarray]:
        return dict(self.graphs.observed)

    def constant_data(self) -> dict[str, np.ndarray]:
        return dict(self.graphs.constants)

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        if not self.graphs.observed:
            return {}
        values = self._values_of(x)
        found = run_graph(self.graphs.log_likelihood, self.graphs.names, values)
        return dict(zip(self.graphs.observed, found, strict=True))

    def predict_draws(self, key: PRNGKeyArray, draws: dict) -> dict[str, np.ndarray]:
        pymc = require("pymc", "pymc")
        if not self.graphs.observed:
            return {}
        with self._quiet_model(), warnings.catch_warnings():
            # Potentials matter to the free variables, and all of these are given.
            warnings.filterwarnings("ignore", "The effect of Potentials")
            found = pymc.sample_posterior_predictive(
                draws_for_pymc(self.graphs, draws),
                model=self.graphs.model,
                var_names=list(self.graphs.observed),
                random_seed=_seed(key),
                progressbar=False,
                return_inferencedata=False,
            )
        return {name: np.asarray(value)[0] for name, value in found.items()}

    def prior_draws(self, key: PRNGKeyArray, n: int) -> dict[str, np.ndarray]:
        pymc = require("pymc", "pymc")
        with self._quiet_model():
            found = pymc.sample_prior_predictive(
                n,
                model=self.graphs.model,
                random_seed=_seed(key),
                return_inferencedata=False,
            )
        wanted = {*self.graphs.names, *self.graphs.derived_names, *self.graphs.observed}
        return {n: np.asarray(v) for n, v in found.items() if n in wanted}

    def dims(self) -> dict[str, list[str]]:
        return {name: list(dims) for name, dims in self.graphs.dims.items()}

    def coords(self) -> dict[str, np.ndarray]:
        return dict(self.graphs.coords)

    @contextlib.contextmanager
    def _quiet_model(self) -> Iterator[None]:
        """The model with its data of the fit, without messages."""
        with without_messages(), as_it_was(self.graphs.model, self.graphs.reading):
            yield

    def _row_terms(self, arrays: list) -> Callable[[list], dict[str, Array]]:
        assert self.graphs.row_terms is not None  # or there would be no rows
        return self.graphs.row_terms.at(arrays)

    def _values_of(self, x: dict) -> dict:
        found = run_graph(self.graphs.from_model, self.graphs.names, x)
        return dict(zip(self.graphs.names, found, strict=True))


def run_graph(function: Callable, names: tuple[str, ...], values: dict) -> list[Array]:
    """Call a translated graph on the variables in order."""
    return list(quietly(function, *[jnp.asarray(values[name]) for name in names]))


def _seed(key: PRNGKeyArray) -> int:
    return int(jax.random.randint(key, (), 0, np.iinfo(np.int32).max))
