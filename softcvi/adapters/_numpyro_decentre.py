"""Non-centred coordinates for hierarchical sites, found by looking at the model."""

from typing import Any

import jax
import jax.numpy as jnp

from softcvi.adapters._extras import require
from softcvi.adapters._numpyro_call import ModelCall, draw_improper
from softcvi.adapters._numpyro_match import latent_names


def hierarchical_sites(call: ModelCall) -> tuple[str, ...]:
    """Names of sites whose location or scale depends on other latent sites."""
    numpyro = require("numpyro", "numpyro")

    def improper(model):
        return numpyro.handlers.substitute(model, substitute_fn=draw_improper)

    first = call.trace(improper)
    values = {n: jnp.asarray(first[n]["value"])[None] for n in latent_names(first)}
    found: list[str] = []

    def run(values: dict[str, Any]) -> int:
        given = lambda m: numpyro.handlers.substitute(m, data=values)  # noqa: E731
        trace = call.trace(given, improper)
        for name in values:
            transform = standardising(trace[name]["fn"])
            # Values that follow from other latents are batched, constants are not.
            leaves = jax.tree_util.tree_leaves(transform)
            if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
                found.append(name)
        return 0

    jax.vmap(run)(values)
    return tuple(found)


def standardising(fn: Any) -> Any:
    """The transform to a variable from its standardised twin on the real line.

    None for distributions that are not a standard one moved, scaled and transformed.
    """
    dist = require("numpyro.distributions", "numpyro")
    transforms = dist.transforms
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
        inner = [transforms.LowerCholeskyAffine(fn.loc, fn.scale_tril)]
    else:
        return None
    return transforms.ComposeTransform([*inner, *outer])
