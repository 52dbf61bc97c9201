"""Non-centred coordinates for hierarchical sites, found by looking at the model."""

from typing import Any

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, moving_sites


def hierarchical_sites(call: ModelCall, latents: dict[str, dict]) -> tuple[str, ...]:
    """Names of sites whose location or scale depends on other latent sites.

    Args:
        call: The model.
        latents: Its latent sites.
    """
    return moving_sites(call, latents, lambda site: standardising(site["fn"]))


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
