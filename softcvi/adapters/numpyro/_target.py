"""The posterior of a NumPyro model as a target."""

import dataclasses
import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi._compile import traced_once
from softcvi.adapters._extras import require
from softcvi.adapters._recentre import space_by_data, standardised_sites
from softcvi.adapters._row_blocks import AbstractRowsTarget, RowBlocks
from softcvi.adapters.numpyro._call import ModelCall, is_improper, substitute
from softcvi.adapters.numpyro._decentre import standard_log_prob
from softcvi.adapters.numpyro._enumerate import (
    key_of,
    summed_log_density,
    with_draws,
)
from softcvi.adapters.numpyro._handlers import (
    as_it_is,
    drawn_if_improper,
    redrawn,
    whole_plates,
)
from softcvi.adapters.numpyro._params import constrained
from softcvi.adapters.numpyro._rows import log_prob_of, site_terms, with_rows
from softcvi.adapters.numpyro._sites import dims_of, latent_sites
from softcvi.adapters.numpyro._space import (
    DynamicSpace,
    SiteSpace,
    make_space,
    with_log_dets,
)
from softcvi.targets import AbstractSpace, FunnelSpace, SpaceOfModel, Structure
from softcvi.targets._base import check_observed
from softcvi.targets._derivatives import twice_if_asked
from softcvi.targets._funnel import through_funnel


class NumPyroTarget(AbstractRowsTarget):
    """The posterior of a NumPyro model; made by ``from_numpyro``.

    Attributes:
        call: The model and its arguments; arrays among them are leaves, so targets
            that differ in their data only share one compiled program.
        params: Unconstrained values of ``numpyro.param`` sites, which ``fit`` trains.
        has_hessian: Whether JAX can differentiate the log density twice; otherwise
            second derivatives are differences of gradients.
        discrete_sizes: Number of values of each discrete site.
        observed: Names of the observed sites.
        subsampled: Names of the plates that subsample their data.
        constants: Names of the deterministic sites that no latent has an effect on:
            they are not part of the draws.
        summed: Names of the discrete sites that the density is summed over; draws of
            them given all other latents are part of the draws.
        undrawn: Names of sites that draws leave out: summed ones inside ``scan``, for
            which NumPyro has no draws, and what follows from them.
        batch_dims: Largest number of batch axes of a site, plates included.
        has_factor: Whether the model has a ``factor``: no data, but a likelihood.
        notes: What the adapter has decided, for people.
        warned: What is suspicious about the model (``model_warnings``).
        rows: Many rows of data, which are evaluated in blocks; None for all at once.

    Example:
        >>> import jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> from softcvi.adapters import from_numpyro
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> from_numpyro(model, jnp.ones(3)).observed
        ('y',)
    """

    maps_by_space: ClassVar[bool] = True

    call: ModelCall
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    params: dict[str, Any]
    param_transforms: dict[str, Any]
    has_gradient: bool = eqx.field(static=True)
    has_hessian: bool = eqx.field(static=True)
    discrete_sizes: dict[str, int] = eqx.field(static=True)
    observed: tuple[str, ...] = eqx.field(static=True)
    subsampled: tuple[str, ...] = eqx.field(static=True)
    constants: tuple[str, ...] = eqx.field(static=True)
    summed: tuple[str, ...] = eqx.field(static=True)
    undrawn: tuple[str, ...] = eqx.field(static=True)
    batch_dims: int = eqx.field(static=True)
    has_factor: bool = eqx.field(static=True)
    notes: tuple[str, ...] = eqx.field(static=True)
    warned: tuple[str, ...] = eqx.field(static=True)
    rows: RowBlocks | None = None

    @property
    def model_warnings(self) -> tuple[str, ...]:
        return self.warned

    def model_parameters(self) -> dict[str, Any]:
        # Modules with priors leave shapes where their parameters were.
        return {
            name: value
            for name, value in self._constrained_params().items()
            if any(map(eqx.is_inexact_array, jax.tree_util.tree_leaves(value)))
        }

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        return _log_density(self, particle, data)

    def initial_particle(self, key: PRNGKeyArray) -> dict[str, Array]:
        site_key, fallback_key = jax.random.split(key)
        trace = self.call.trace(
            substitute(self._constrained_params()),
            whole_plates if self.subsampled else as_it_is,
            drawn_if_improper,
            key=site_key,
        )
        x = {name: trace[name]["value"] for name in self.structure.like}
        u, _ = self.space.from_model_and_log_det(x)
        spread = super().initial_particle(fallback_key)
        # Extreme draws of wide priors land on the boundary of their support.
        return {
            name: jnp.where(jnp.isfinite(u[name]), u[name], spread[name])
            if jnp.issubdtype(spread[name].dtype, jnp.floating)
            else u[name].astype(spread[name].dtype)
            for name in spread
        }

    @property
    def standardised(self) -> dict[str, np.ndarray] | None:
        return standardised_sites(self.structure, self.space)

    def recentred(
        self, mean: dict[str, Array], spread: dict[str, Array], draws: Any = None
    ) -> "NumPyroTarget | None":
        if not isinstance(self.space, DynamicSpace):
            return None
        space = space_by_data(self.space.priors(mean), mean, spread)
        if space.decentred == self.space.decentred and not space.informed:
            return None
        return self.in_space(space)

    def in_space(self, space: AbstractSpace) -> "NumPyroTarget":
        if isinstance(space, FunnelSpace):
            return through_funnel(self.in_space(space.inner), space)
        if isinstance(space, SpaceOfModel):
            found = latent_sites(self.call)
            latents = {name: found[name] for name in self.structure.like}
            has_offsets = isinstance(self.space, SiteSpace | DynamicSpace)
            offsets = self.space.offsets if has_offsets else {}
            space = make_space(self.call, latents, offsets, space)
        return dataclasses.replace(self, space=space)

    def describe(self, x: dict) -> dict[str, Array]:
        trace = self._trace(x)
        derived = {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] == "deterministic" and name not in self.constants
        }
        drawn = {name: trace[name]["value"] for name in self.summed}
        shown = {**self._latents_of(x), **drawn, **derived}
        return {name: v for name, v in shown.items() if name not in self.undrawn}

    def num_values(self) -> dict[str, int]:
        return self.discrete_sizes

    def with_rows(self, rows: list) -> "NumPyroTarget":
        """The posterior given some rows of the data alone.

        Args:
            rows: For each array among the arguments these rows, or None.
        """
        assert self.rows is not None  # or there would be none to take
        call = with_rows(self.call, self.rows.whole, rows)
        return dataclasses.replace(self, call=call, rows=None)

    def draw_data(self, key: PRNGKeyArray) -> Any:
        return key if self.subsampled else None

    def trainable(self) -> "NumPyroTarget":
        frozen = jax.tree_util.tree_map(lambda _: False, self)
        params = jax.tree_util.tree_map(eqx.is_inexact_array, self.params)
        # Modules with priors for all of their parameters leave no arrays to point at.
        return dataclasses.replace(frozen, params=params)

    def observed_data(self) -> dict[str, np.ndarray]:
        trace = self._prior_trace()
        return {name: np.asarray(trace[name]["value"]) for name in self.observed}

    def constant_data(self) -> dict[str, np.ndarray]:
        trace = self._prior_trace()
        return {name: np.asarray(trace[name]["value"]) for name in self.constants}

    def prior(self, key: PRNGKeyArray) -> dict[str, Array]:
        numpyro = require("numpyro", "numpyro")
        # The seed comes after, for it gives keys to sites that are not observed.
        model = numpyro.handlers.seed(redrawn(self.call.model), key)
        for handler in (
            substitute(self._constrained_params()),
            whole_plates,
            drawn_if_improper,
        ):
            model = handler(model)
        args, kwargs = self.call.arguments()
        trace = numpyro.handlers.trace(model).get_trace(*args, **kwargs)
        shown = ("sample", "deterministic")
        return {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] in shown and name not in self.constants
        }

    def simulate(self, key: PRNGKeyArray) -> tuple[dict[str, Array], dict[str, Array]]:
        improper = [
            name
            for name, site in latent_sites(self.call).items()
            if is_improper(site["fn"])
        ]
        if improper or self.has_factor:
            reason = f"the prior of {improper} is improper" if improper else "a factor"
            raise ValueError(
                f"target: no data can be simulated from its model ({reason}); give "
                "simulate=, a function of a key that returns parameters and data."
            )
        drawn = self.prior(key)
        return self._latents_of(drawn), {name: drawn[name] for name in self.observed}

    def with_observed(self, observed: dict[str, Array]) -> "NumPyroTarget":
        if self.subsampled:
            raise ValueError(
                f"target: the plates {sorted(self.subsampled)} take some rows at a "
                "time, and data can be replaced as a whole only; leave subsample_size "
                "out."
            )
        check_observed(observed, self.observed_data())
        call = eqx.tree_at(lambda c: c.given, self.call, observed)
        # Blocks of rows are taken from the arguments.
        return dataclasses.replace(self, call=call, rows=None)

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        if self.summed:
            # Given drawn discrete values it is not the likelihood that LOO is about.
            return {}
        trace = self._trace(self._latents_of(x))
        return {name: log_prob_of(trace[name]) for name in self.observed}

    def predict(self, key: PRNGKeyArray, x: dict) -> dict[str, Array]:
        return predict(self, self.call, key, x)

    def dims(self) -> dict[str, list[str]]:
        trace = self._prior_trace()
        return {
            name: dims_of(site)
            for name, site in trace.items()
            if site["type"] in ("sample", "deterministic")
        }

    def coords(self) -> dict[str, np.ndarray]:
        trace = self._prior_trace()
        return {
            name: np.arange(site["args"][0])
            for name, site in trace.items()
            if site["type"] == "plate"
        }

    def _prior_trace(self) -> dict[str, dict]:
        return self.call.trace(
            substitute(self._constrained_params()), whole_plates, drawn_if_improper
        )

    def _trace(self, x: dict, key: PRNGKeyArray | None = None) -> dict[str, dict]:
        handlers = self._fixing(x, key)
        if not {*self.summed} <= {*x, *self.undrawn}:
            drawn_key = key_of(self._latents_of(x))
            handlers = (*handlers, lambda model: with_draws(model, drawn_key))
        return self.call.trace(*handlers, key=key)

    def _fixing(self, x: dict, key: PRNGKeyArray | None) -> tuple:
        """Handlers that fix latents and parameters, and plates where they must be."""
        known = {name: x[name] for name in self.summed if name in x}
        values = {**self._latents_of(x), **known, **self._constrained_params()}
        # A key means one step on a mini-batch; otherwise plates hold all their data.
        whole = whole_plates if self.subsampled and key is None else as_it_is
        return substitute(values), whole

    def _summed_log_density(self, x: dict, key: PRNGKeyArray | None) -> Scalar:
        fixing = self._fixing(x, key)
        key = jax.random.key(0) if key is None else key
        model = self.call.handled(*fixing, key=key)
        args, kwargs = self.call.arguments()
        return summed_log_density(model, args, kwargs, self.batch_dims)

    def _latents_of(self, x: dict) -> dict[str, Any]:
        return {name: x[name] for name in self.structure.like}

    def _constrained_params(self) -> dict[str, Any]:
        return constrained(self.params, self.param_transforms)


def predict(
    target: NumPyroTarget, call: ModelCall, key: PRNGKeyArray, x: dict
) -> dict[str, Array]:
    """One run of a model with latents fixed and the observed sites drawn anew."""
    numpyro = require("numpyro", "numpyro")
    values = {**target._latents_of(x), **target._constrained_params()}
    if call is target.call:
        # Other arguments may have other numbers of them, which are then drawn anew.
        values |= {name: x[name] for name in target.summed if name in x}
    args, kwargs = call.arguments()
    model = numpyro.handlers.substitute(redrawn(call.model), values)
    model = whole_plates(model) if target.subsampled else model
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, key))
    sites = trace.get_trace(*args, **kwargs)
    return {name: sites[name]["value"] for name in target.observed if name in sites}


@twice_if_asked
@functools.partial(traced_once, outside=False)
def _log_density(target: NumPyroTarget, particle: dict, data: Any) -> Scalar:
    if target.summed:
        x, log_det = target.space.to_model_and_log_det(particle)
        return target._summed_log_density(x, data) + log_det
    space = target.space
    chosen = space.stored() if isinstance(space, DynamicSpace) else SpaceOfModel()
    x, log_dets = with_log_dets(space, particle)
    few = target if target.rows is None else target.with_rows(target.rows.first())
    total = jnp.zeros(())
    trace = few._trace(x, key=data)
    terms = site_terms(trace)
    in_blocks = () if target.rows is None else target.rows.sites
    for name in terms:
        if name in in_blocks:
            continue
        log_prob = None
        if name in chosen.decentred:
            log_prob = standard_log_prob(trace[name], particle[name], chosen.informed)
        if log_prob is None:
            log_prob = terms[name]
        else:
            del log_dets[name]
        total = total + jnp.sum(log_prob)
    if target.rows is not None:
        total = total + target.rows.total(
            lambda rows: site_terms(target.with_rows(rows)._trace(x)), total.dtype
        )
    return sum(log_dets.values(), total)
