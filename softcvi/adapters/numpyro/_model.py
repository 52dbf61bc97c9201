"""Targets made from NumPyro models."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.adapters.numpyro._call import ModelCall, substitute
from softcvi.adapters.numpyro._decentre import hierarchical_sites
from softcvi.adapters.numpyro._handlers import (
    as_it_is,
    drawn_if_improper,
    redrawn,
    whole_plates,
)
from softcvi.adapters.numpyro._params import constrained, split_params
from softcvi.adapters.numpyro._sites import (
    dims_of,
    discrete_range,
    find_sites,
    is_discrete,
)
from softcvi.adapters.numpyro._space import DynamicSpace, make_space
from softcvi.targets import AbstractSpace, ModelSpace, SpaceOfModel, Structure

# A standardised variable whose posterior is narrower than this is known from the data
# rather than from its prior, and its centred twin is the more nearly normal one.
_INFORMED_SPREAD = 0.5


class NumPyroTarget(AbstractModelTarget):
    """The posterior of a NumPyro model; made by ``from_numpyro``.

    Attributes:
        call: The model and its arguments; arrays among them are leaves, so targets
            that differ in their data only share one compiled program.
        params: Unconstrained values of ``numpyro.param`` sites, trained by
            ``WithModelTerm``.
        discrete_sizes: Number of values of each discrete site.
        observed: Names of the observed sites.
        subsampled: Names of the plates that subsample their data.

    Example:
        >>> import jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> from softcvi.adapters import from_numpyro
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
        >>> from_numpyro(model, jnp.ones(3)).observed
        ('y',)
    """

    call: ModelCall
    structure: Structure = eqx.field(static=True)
    space: AbstractSpace
    params: dict[str, Any]
    param_transforms: dict[str, Any]
    has_gradient: bool = eqx.field(static=True)
    discrete_sizes: dict[str, int] = eqx.field(static=True)
    observed: tuple[str, ...] = eqx.field(static=True)
    subsampled: tuple[str, ...] = eqx.field(static=True)

    def log_density(self, particle: dict, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        trace = self._trace(x, key=data)
        numpyro = require("numpyro", "numpyro")
        total = jnp.zeros(())
        for site in trace.values():
            if site["type"] == "sample":
                log_prob = _log_prob(site)
                log_prob = numpyro.distributions.util.scale_and_mask(
                    log_prob, site["scale"]
                )
                total = total + jnp.sum(log_prob)
        return total + log_det

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

    def recentred(self, spread: dict[str, Array]) -> "NumPyroTarget | None":
        if not isinstance(self.space, DynamicSpace):
            return None
        kept = tuple(
            name
            for name in self.space.decentred
            if np.exp(np.mean(np.log(spread[name]))) > _INFORMED_SPREAD
        )
        if kept == self.space.decentred:
            return None
        return self.in_space(SpaceOfModel(kept))

    def in_space(self, space: AbstractSpace) -> "NumPyroTarget":
        if isinstance(space, SpaceOfModel):
            latents = find_sites(self.call).latents
            offsets = getattr(self.space, "offsets", {})
            space = make_space(self.call, latents, offsets, space.decentred)
        return dataclasses.replace(self, space=space)

    def describe(self, x: dict) -> dict[str, Array]:
        trace = self._trace(x)
        derived = {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] == "deterministic"
        }
        return {**x, **derived}

    def num_values(self) -> dict[str, int]:
        return self.discrete_sizes

    def draw_data(self, key: PRNGKeyArray) -> Any:
        return key if self.subsampled else None

    def trainable(self) -> "NumPyroTarget":
        frozen = jax.tree_util.tree_map(lambda _: False, self)
        params = jax.tree_util.tree_map(eqx.is_inexact_array, self.params)
        return eqx.tree_at(
            lambda t: t.params, frozen, params, is_leaf=lambda leaf: leaf is None
        )

    def observed_data(self) -> dict[str, np.ndarray]:
        trace = self._prior_trace()
        return {name: np.asarray(trace[name]["value"]) for name in self.observed}

    def log_likelihood(self, x: dict) -> dict[str, Array]:
        trace = self._trace(self._latents_of(x))
        return {name: _log_prob(trace[name]) for name in self.observed}

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
        values = {**self._latents_of(x), **self._constrained_params()}
        # A key means one step on a mini-batch; otherwise plates hold all their data.
        whole = whole_plates if self.subsampled and key is None else as_it_is
        return self.call.trace(substitute(values), whole, key=key)

    def _latents_of(self, x: dict) -> dict[str, Any]:
        return {name: x[name] for name in self.structure.like}

    def _constrained_params(self) -> dict[str, Any]:
        return constrained(self.params, self.param_transforms)


def from_numpyro(
    model: Callable,
    *args: Any,
    space: str | AbstractSpace = "unconstrained",
    decentre: bool = True,
    **kwargs: Any,
) -> NumPyroTarget:
    """The posterior of a NumPyro model given its arguments.

    Latent sites are found by running the model once. Plates, ``factor``,
    ``handlers.reparam``, ``mask`` and ``scale``, improper priors and discrete sites
    work as NumPyro means them; ``deterministic`` sites appear in the draws. A site may
    be discrete: it needs no enumeration.

    Args:
        model: The model, as NumPyro users write it.
        *args: Its positional arguments, observed data included.
        space: ``"unconstrained"`` maps every site to the real line by ``biject_to``;
            ``"model"`` keeps the model's own coordinates (use ``handlers.reparam`` or
            a guide on the right support); or a space of ``softcvi.targets``.
        decentre: Fit sites whose location or scale depends on other latents in
            non-centred coordinates, as a user who knows of Neal's funnel would write
            them by hand; ``fit`` without a guide goes back to centred ones for sites
            on which the data say much. Draws and densities are those of the model as
            it is written.
        **kwargs: Keyword arguments of the model.

    Returns:
        A target for ``softcvi.fit``.

    Example:
        >>> import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
        >>> import softcvi
        >>> from softcvi.adapters import from_numpyro
        >>> def model(y):
        ...     mu = numpyro.sample("mu", dist.Normal(0, 5))
        ...     sigma = numpyro.sample("sigma", dist.HalfNormal(2))
        ...     numpyro.sample("y", dist.Normal(mu, sigma), obs=y)
        >>> target = from_numpyro(model, jnp.array([1.0, 2.0, 3.0]))
        >>> target.structure
        Structure(mu: (), sigma: ())
        >>> float(target.space.to_model({"mu": 0.0, "sigma": 0.0})["sigma"])
        1.0
    """
    require("numpyro", "numpyro")
    if not callable(model):
        raise TypeError(f"model: expected a NumPyro model; got {type(model).__name__}.")
    call = ModelCall(model, args, kwargs)
    sites = find_sites(call)
    ranges = {n: discrete_range(s) for n, s in sites.latents.items() if is_discrete(s)}
    can_decentre = decentre and not ranges and not sites.subsampled
    standard = hierarchical_sites(call, sites.latents) if can_decentre else ()
    chosen = _chosen_space(space, call, sites.latents, ranges, standard)
    values = {name: jnp.asarray(s["value"]) for name, s in sites.latents.items()}
    like = jax.eval_shape(lambda x: chosen.from_model_and_log_det(x)[0], values)
    params, transforms = split_params(sites.trace)
    return NumPyroTarget(
        call=call,
        structure=Structure(_floats_or_ints(like, ranges)),
        space=chosen,
        params=params,
        param_transforms=transforms,
        has_gradient=not ranges,
        discrete_sizes={n: size for n, (_, size) in ranges.items() if size is not None},
        observed=tuple(sites.observed),
        subsampled=sites.subsampled,
    )


def predict(
    target: NumPyroTarget, call: ModelCall, key: PRNGKeyArray, x: dict
) -> dict[str, Array]:
    """One run of a model with latents fixed and the observed sites drawn anew."""
    numpyro = require("numpyro", "numpyro")
    values = {**target._latents_of(x), **target._constrained_params()}
    args, kwargs = call.arguments()
    model = numpyro.handlers.substitute(redrawn(call.model), values)
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, key))
    sites = trace.get_trace(*args, **kwargs)
    return {name: sites[name]["value"] for name in target.observed if name in sites}


def _chosen_space(space, call, latents, ranges, standard) -> AbstractSpace:
    if isinstance(space, AbstractSpace):
        return space
    if space == "model":
        return ModelSpace()
    if space != "unconstrained":
        raise ValueError(
            f"space: expected 'unconstrained', 'model' or a space of softcvi.targets; "
            f"got {space!r}."
        )
    lowest = {name: low for name, (low, _) in ranges.items()}
    return make_space(call, latents, lowest, standard)


def _floats_or_ints(like: dict, ranges: dict) -> dict:
    """Discrete sites as integers, whatever a distribution draws."""
    return {
        name: jax.ShapeDtypeStruct(leaf.shape, jnp.int32) if name in ranges else leaf
        for name, leaf in like.items()
    }


def _log_prob(site: dict) -> Array:
    if site["intermediates"]:
        return site["fn"].log_prob(site["value"], site["intermediates"])
    return site["fn"].log_prob(site["value"])
