"""Non-centred coordinates for hierarchical sites, found by looking at the model."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import LONGEST_BY_STEPS, Prior
from softcvi.adapters.numpyro._call import (
    ModelCall,
    is_in_loop,
    moving_sites,
    substitute,
)
from softcvi.adapters.numpyro._handlers import forward_scans
from softcvi.targets import Informed


def hierarchical_sites(
    call: ModelCall, latents: dict[str, dict]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sites whose location or scale depends on other latent sites, and notes.

    Args:
        call: The model.
        latents: Its latent sites.

    Returns:
        Names of the sites that can be fitted in standardised coordinates, and a note
        on each one that had to be left as the model writes it.
    """
    notes: list[str] = []

    def standardised(site: dict) -> Any:
        try:
            return standardising(site["fn"])
        except Exception as error:
            notes.append(_note(site["name"], error))
            return None

    found = moving_sites(call, latents, standardised)
    usable = []
    for name in found:
        size = jnp.size(latents[name]["value"])
        if is_in_loop(latents[name]) and size > LONGEST_BY_STEPS:
            continue
        failure = _failure(call, latents, name)
        if failure is None:
            usable.append(name)
        else:
            notes.append(_note(name, failure))
    return tuple(usable), tuple(dict.fromkeys(notes))


def standardising(fn: Any, informed: Informed | None = None) -> Any:
    """The transform to a variable from its standardised twin on the real line.

    None for distributions that are not a standard one moved, scaled and transformed.

    Args:
        fn: The distribution.
        informed: What the data say of the variable, if its twin is standardised by
            location and scale given them.
    """
    transforms = require("numpyro.distributions.transforms", "numpyro")
    found = prior_of(fn)
    if found is None:
        return None
    (location, scale, is_matrix), outer = found
    if is_matrix:
        inner = transforms.LowerCholeskyAffine(location, scale)
    else:
        if informed is not None:
            location, scale = informed.given(location, scale)
        inner = transforms.AffineTransform(location, scale)
    return transforms.ComposeTransform([inner, *outer])


def prior_of(fn: Any) -> tuple[Prior, list] | None:
    """Location and scale on the real line, and the transforms from there to a value."""
    dist = require("numpyro.distributions", "numpyro")
    shape = tuple(fn.shape())
    outer: list[Any] = []
    while getattr(fn, "base_dist", None) is not None:
        if isinstance(fn, dist.TransformedDistribution):
            outer = [*fn.transforms, *outer]
        fn = fn.base_dist
    if isinstance(fn, _moved_and_scaled()):
        return Prior(fn.loc, fn.scale), outer
    if isinstance(fn, dist.HalfNormal | dist.HalfCauchy):
        return Prior(jnp.log(fn.scale), 1.0), [dist.transforms.ExpTransform(), *outer]
    if isinstance(fn, dist.MultivariateNormal):
        # A plate or expand repeats the distribution, and one triangular solve for all
        # members needs one factor per member.
        factor = jnp.broadcast_to(fn.scale_tril, (*shape, shape[-1]))
        return Prior(fn.loc, factor, is_matrix=True), outer
    if isinstance(fn, dist.GaussianRandomWalk):
        # A walk by its steps, whose width does not change with the scale.
        sums = jnp.tril(jnp.ones((shape[-1], shape[-1])))
        factor = jnp.asarray(fn.scale)[..., None, None] * sums
        factor = jnp.broadcast_to(factor, (*shape, shape[-1]))
        return Prior(jnp.zeros(shape), factor, is_matrix=True), outer
    return None


def standard_log_prob(
    site: dict, u: Array, informed: Mapping[str, Informed]
) -> Array | None:
    """Log density of a site's standardised twin, without a way through its value.

    The value is rounded, and where the scale is tiny beside the location nothing of the
    twin is left in it: a hierarchy would have a mode at a scale of zero that is made of
    rounding alone. None where only the value can tell.

    Args:
        site: The site.
        u: Its standardised twin.
        informed: What the data say of sites, by name, where that is used.
    """
    dist = require("numpyro.distributions", "numpyro")
    fn = site["fn"]
    wrappers = (
        dist.ExpandedDistribution | dist.Independent | dist.TransformedDistribution
    )
    while isinstance(fn, wrappers):
        fn = fn.base_dist
    # Neither masks nor the scales of plates that subsample are part of the twin.
    if site["scale"] is not None:
        return None
    found = prior_of(site["fn"])
    data = informed.get(site["name"])
    if data is None or found is None:
        return _standard_log_prob(fn, u)
    z, log_det = data.by_prior(u, found[0].location, found[0].scale)
    log_prob = _standard_log_prob(fn, z)
    return None if log_prob is None else log_prob + log_det


def _standard_log_prob(fn: Any, u: Array) -> Array | None:
    dist = require("numpyro.distributions", "numpyro")
    if isinstance(fn, dist.HalfNormal | dist.HalfCauchy):
        return type(fn)(1.0).log_prob(jnp.exp(u)) + u
    if isinstance(fn, dist.StudentT):
        return dist.StudentT(fn.df).log_prob(u)
    if isinstance(fn, dist.MultivariateNormal | dist.GaussianRandomWalk):
        return dist.Normal().log_prob(u)
    return type(fn)().log_prob(u) if isinstance(fn, _moved_and_scaled()) else None


def _moved_and_scaled() -> Any:
    dist = require("numpyro.distributions", "numpyro")
    return dist.Normal | dist.Laplace | dist.Cauchy | dist.StudentT


def _failure(call: ModelCall, latents: dict[str, dict], name: str) -> Exception | None:
    """Why a site cannot be standardised and back, by shapes alone."""
    numpyro = require("numpyro", "numpyro")
    values = {n: jnp.asarray(site["value"]) for n, site in latents.items()}
    stepped: list[str] = []

    def note_steps(site: dict) -> None:
        if step_of(site) is not None:
            stepped.append(site["name"])

    def there_and_back(values: dict[str, Any]) -> Any:
        trace = call.trace(
            substitute(values),
            lambda model: numpyro.handlers.substitute(model, substitute_fn=note_steps),
            *((forward_scans,) if is_in_loop(latents[name]) else ()),
        )
        if is_in_loop(latents[name]) and name not in stepped:
            raise NotImplementedError("it lies inside cond, or in loops in a loop")
        transform = standardising(trace[name]["fn"])
        u = transform.inv(values[name])
        return transform(u), transform.log_abs_det_jacobian(u, values[name])

    try:
        again, _ = jax.eval_shape(there_and_back, values)
    except Exception as error:
        return error
    if again.shape != values[name].shape:
        return ValueError(f"shape {values[name].shape} becomes {again.shape}")
    return None


def step_of(site: dict) -> Any:
    """The number of the step of ``scan`` that a site belongs to; None outside of it."""
    return site.get("infer", {}).get("_scan_current_index")


def _note(name: str, error: Exception) -> str:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return (
        f"site '{name}' is fitted as the model writes it: non-centred coordinates "
        f"could not be made ({reason})"
    )
