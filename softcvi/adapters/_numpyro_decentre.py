"""Non-centred coordinates for hierarchical sites, found by looking at the model."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from softcvi.adapters._extras import require
from softcvi.adapters._numpyro_call import ModelCall, draw_improper
from softcvi.adapters._numpyro_match import latent_names


def decentred(call: ModelCall) -> Callable:
    """The model with every location-scale site that hangs on other latents decentred.

    Args:
        call: The model with its arguments.
    """
    reparam = require("numpyro.infer.reparam", "numpyro")
    handlers = require("numpyro", "numpyro").handlers
    config = {
        name: reparam.LocScaleReparam(0.0, shape_params=shape_params)
        for name, shape_params in hierarchical_sites(call).items()
    }
    return handlers.reparam(call.model, config=config)


def hierarchical_sites(call: ModelCall) -> dict[str, tuple[str, ...]]:
    """Names of sites whose location or scale depends on other latent sites."""
    numpyro = require("numpyro", "numpyro")
    dist = numpyro.distributions
    families = {
        dist.Normal: (),
        dist.Laplace: (),
        dist.Cauchy: (),
        dist.StudentT: ("df",),
    }

    def improper(model):
        return numpyro.handlers.substitute(model, substitute_fn=draw_improper)

    first = call.trace(improper)
    values = {n: jnp.asarray(first[n]["value"])[None] for n in latent_names(first)}
    found: dict[str, tuple[str, ...]] = {}

    def run(values: dict[str, Any]) -> int:
        given = lambda m: numpyro.handlers.substitute(m, data=values)  # noqa: E731
        trace = call.trace(given, improper)
        for name in values:
            fn = _inner(trace[name]["fn"])
            # Values that follow from other latents are batched, constants are not.
            parts = (getattr(fn, "loc", None), getattr(fn, "scale", None))
            if type(fn) in families and any(
                isinstance(part, jax.core.Tracer) for part in parts
            ):
                found[name] = families[type(fn)]
        return 0

    jax.vmap(run)(values)
    return found


def _inner(fn: Any) -> Any:
    while getattr(fn, "base_dist", None) is not None:
        fn = fn.base_dist
    return fn
