"""Non-centred coordinates for hierarchical sites, found by looking at the model."""

from typing import Any

import jax
import jax.numpy as jnp

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import (
    ModelCall,
    is_in_loop,
    moving_sites,
    substitute,
)

_IN_LOOP = NotImplementedError("it lies inside scan, and depends on itself")


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
        looped = is_in_loop(latents[name])
        failure = _IN_LOOP if looped else _failure(call, latents, name)
        if failure is None:
            usable.append(name)
        else:
            notes.append(_note(name, failure))
    return tuple(usable), tuple(dict.fromkeys(notes))


def standardising(fn: Any) -> Any:
    """The transform to a variable from its standardised twin on the real line.

    None for distributions that are not a standard one moved, scaled and transformed.
    """
    dist = require("numpyro.distributions", "numpyro")
    transforms = dist.transforms
    shape = tuple(fn.shape())
    outer: list[Any] = []
    while getattr(fn, "base_dist", None) is not None:
        if isinstance(fn, dist.TransformedDistribution):
            outer = [*fn.transforms, *outer]
        fn = fn.base_dist
    if isinstance(fn, dist.Normal | dist.Laplace | dist.Cauchy | dist.StudentT):
        inner = [transforms.AffineTransform(fn.loc, fn.scale)]
    elif isinstance(fn, dist.HalfNormal | dist.HalfCauchy):
        inner = [transforms.ExpTransform(), transforms.AffineTransform(0.0, fn.scale)]
    elif isinstance(fn, dist.MultivariateNormal):
        # A plate or expand repeats the distribution, and one triangular solve for all
        # members needs one factor per member.
        factor = jnp.broadcast_to(fn.scale_tril, (*shape, shape[-1]))
        inner = [transforms.LowerCholeskyAffine(fn.loc, factor)]
    else:
        return None
    return transforms.ComposeTransform([*inner, *outer])


def _failure(call: ModelCall, latents: dict[str, dict], name: str) -> Exception | None:
    """Why a site cannot be standardised and back, by shapes alone."""
    values = {n: jnp.asarray(site["value"]) for n, site in latents.items()}

    def there_and_back(values: dict[str, Any]) -> Any:
        trace = call.trace(substitute(values))
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


def _note(name: str, error: Exception) -> str:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return (
        f"site '{name}' is fitted as the model writes it: non-centred coordinates "
        f"could not be made ({reason})"
    )
