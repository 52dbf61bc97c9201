"""Targets made from NumPyro models."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from softcvi._compile import host_key
from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, is_in_loop, moving_sites
from softcvi.adapters.numpyro._decentre import hierarchical_sites
from softcvi.adapters.numpyro._enumerate import num_batch_dims, summed_sites
from softcvi.adapters.numpyro._params import split_params
from softcvi.adapters.numpyro._rows import RowBlocks, rows_of
from softcvi.adapters.numpyro._sites import (
    Sites,
    discrete_range,
    find_sites,
    is_discrete,
    unchecked_sites,
)
from softcvi.adapters.numpyro._space import make_space
from softcvi.adapters.numpyro._target import NumPyroTarget
from softcvi.fitting._cache import cache_by_default
from softcvi.targets import AbstractSpace, ModelSpace, SpaceOfModel, Structure
from softcvi.targets._derivatives import may_lack_derivatives, num_derivatives
from softcvi.targets._read_now import as_read_now


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
    be discrete: it needs no enumeration. Sites marked for it (``infer={"enumerate":
    "parallel"}`` or ``config_enumerate``) are summed out as by NUTS, and drawn given
    the other latents, one draw for each draw of these; inside ``scan`` they are summed
    out alone. With 100,000 rows of data and more, each with a term of its own, the
    density is evaluated in blocks of rows.

    Args:
        model: The model, as NumPyro users write it.
        *args: Its positional arguments, observed data included.
        space: ``"unconstrained"`` maps every site to the real line by ``biject_to``;
            ``"model"`` keeps the model's own coordinates (use ``handlers.reparam`` or
            a guide on the right support); or a space of ``softcvi.targets``.
        decentre: Fit sites whose location or scale depends on other latents in
            non-centred coordinates, as a user who knows of Neal's funnel would write
            them by hand, and series inside ``scan`` by their steps; ``fit`` without a
            guide goes back to centred ones for sites on which the data say much. Draws
            and densities are those of the model as it is written.
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
    # Programs are compiled from here on, which the next process need not do again.
    cache_by_default()
    call = ModelCall(as_read_now(model), args, kwargs)
    sites = find_sites(call)
    return _target(call, sites, space, decentre)


def target_in_step(
    model: Callable, args: tuple, kwargs: dict[str, Any]
) -> NumPyroTarget:
    """The target of a model inside a compiled step, where data cannot be checked.

    Args:
        model: The model, with its parameters substituted.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    call = ModelCall(model, args, kwargs)
    return _target(call, unchecked_sites(call), "unconstrained", decentre=False)


def _target(
    call: ModelCall, sites: Sites, space: str | AbstractSpace, decentre: bool
) -> NumPyroTarget:
    summed = summed_sites(sites.latents)
    latents = {n: site for n, site in sites.latents.items() if n not in summed}
    ranges = {n: discrete_range(s) for n, s in latents.items() if is_discrete(s)}
    can_decentre = decentre and not (ranges or sites.subsampled or summed)
    standard, notes = hierarchical_sites(call, latents) if can_decentre else ((), ())
    chosen = _chosen_space(space, call, latents, ranges, standard)
    values = {name: jnp.asarray(s["value"]) for name, s in latents.items()}
    like = jax.eval_shape(lambda x: chosen.from_model_and_log_det(x)[0], values)
    params, transforms = split_params(sites.trace)
    target = NumPyroTarget(
        call=call,
        structure=Structure(_floats_or_ints(like, ranges)),
        space=chosen,
        params=params,
        param_transforms=transforms,
        has_gradient=not ranges,
        has_hessian=True,
        discrete_sizes={n: size for n, (_, size) in ranges.items() if size is not None},
        observed=tuple(sites.observed),
        subsampled=sites.subsampled,
        constants=_constants(call, sites),
        summed=summed,
        undrawn=_undrawn(call, sites, summed),
        batch_dims=num_batch_dims(sites.trace),
        has_factor=any(
            s["type"] == "sample" and s["is_observed"] and n not in sites.observed
            for n, s in sites.trace.items()
        ),
        notes=notes,
        warned=sites.warnings,
        rows=_rows(call, sites, summed),
    )
    if ranges:
        return target
    args = target.like, target.draw_data(host_key(0))
    if not may_lack_derivatives(target.log_density, *args):
        return target
    known = num_derivatives(target.log_density, *args)
    return dataclasses.replace(target, has_gradient=known > 0, has_hessian=known != 1)


def _rows(call: ModelCall, sites: Sites, summed: tuple[str, ...]) -> RowBlocks | None:
    """The rows of the data, where there are many with a term each."""
    if sites.subsampled or summed:
        return None
    return rows_of(call, sites.observed, sites.latents)


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
    return make_space(call, latents, lowest, SpaceOfModel(standard))


def _floats_or_ints(like: dict, ranges: dict) -> dict:
    """Discrete sites as integers, whatever a distribution draws."""
    return {
        name: jax.ShapeDtypeStruct(leaf.shape, jnp.int32) if name in ranges else leaf
        for name, leaf in like.items()
    }


def _constants(call: ModelCall, sites: Sites) -> tuple[str, ...]:
    """Deterministic sites that no latent has an effect on."""
    names = _deterministic(sites)
    moving = moving_sites(call, sites.latents, lambda site: site["value"], names)
    return tuple(name for name in names if name not in moving)


def _undrawn(call: ModelCall, sites: Sites, summed: tuple[str, ...]) -> tuple[str, ...]:
    """Summed sites if one lies in a loop, and the deterministic sites they move."""
    of = {name: sites.latents[name] for name in summed}
    if not any(is_in_loop(site) for site in of.values()):
        return ()
    names = _deterministic(sites)
    return (*summed, *moving_sites(call, of, lambda site: site["value"], names))


def _deterministic(sites: Sites) -> tuple[str, ...]:
    return tuple(n for n, s in sites.trace.items() if s["type"] == "deterministic")
