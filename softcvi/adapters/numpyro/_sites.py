"""Which sites of a NumPyro model are latent, observed, discrete; and their checks."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi._compile import rarely_run
from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, draw_improper
from softcvi.adapters.numpyro._match import latent_names


class Sites(eqx.Module):
    """What one run of a model reveals about its sites.

    Attributes:
        trace: The trace, with concrete values drawn from the prior.
        latents: The latent sites.
        observed: Observed sites with data, so without ``factor`` statements.
        subsampled: Names of the plates that subsample.
    """

    trace: dict[str, dict]
    latents: dict[str, dict]
    observed: dict[str, dict]
    subsampled: tuple[str, ...]


def find_sites(call: ModelCall) -> Sites:
    """Run the model once on a prior draw and sort its sites."""
    try:
        trace = _compiled_prior_draw(call)
    except Exception:
        # What cannot be compiled may still run, and an error then names its line.
        trace = _prior_draw(call)
    samples = {n: s for n, s in trace.items() if s["type"] == "sample"}
    latents = {name: samples[name] for name in latent_names(trace)}
    if not latents:
        raise ValueError(
            "model: has no latent site; every numpyro.sample is observed or a constant."
        )
    subsampled = tuple(
        name
        for name, site in trace.items()
        if site["type"] == "plate" and _subsamples(site)
    )
    sites = Sites(
        trace=trace,
        latents=latents,
        observed={n: s for n, s in samples.items() if _is_data(s)},
        subsampled=subsampled,
    )
    _check_observed(sites.observed)
    _check_subsampling(sites)
    return sites


def _prior_draw(call: ModelCall) -> dict[str, dict]:
    numpyro = require("numpyro", "numpyro")
    return call.trace(
        lambda m: numpyro.handlers.substitute(m, substitute_fn=draw_improper),
        validate=True,
    )


# One program, where each operation of the model by itself would be compiled as one.
_compiled_prior_draw = rarely_run(_prior_draw, effort=0)


def is_discrete(site: dict) -> bool:
    """Whether a site takes countably many values."""
    return bool(site["fn"].support.is_discrete)


def discrete_range(site: dict) -> tuple[int, int | None]:
    """Smallest value of a discrete site, and how many there are if finitely many."""
    try:
        values = np.asarray(site["fn"].enumerate_support(expand=False)).reshape(-1)
    except NotImplementedError:
        return 0, None
    low, size = int(values.min()), int(values.max() - values.min()) + 1
    return low, size


def dims_of(site: dict) -> list[str]:
    """Names of the plate dimensions of a site, with its own for the event."""
    shape = jnp.shape(site["value"])
    event_dim = len(site["fn"].event_shape) if site["type"] == "sample" else 0
    batch = len(shape) - event_dim
    names: list[Any] = [f"{site['name']}_dim_{i}" for i in range(len(shape))]
    for frame in site["cond_indep_stack"]:
        position = batch + frame.dim
        if 0 <= position < batch and shape[position] == frame.size:
            names[position] = frame.name
    return names


def _is_data(site: dict) -> bool:
    numpyro = require("numpyro", "numpyro")
    is_factor = isinstance(site["fn"], numpyro.distributions.Unit)
    return site["is_observed"] and not is_factor


def _subsamples(site: dict) -> bool:
    size, subsample_size = site["args"][:2]
    return subsample_size is not None and subsample_size < size


def _check_observed(observed: dict[str, dict]) -> None:
    for name, site in observed.items():
        value = site["value"]
        if isinstance(value, jax.core.Tracer):
            continue
        value = np.asarray(value)
        if value.dtype.kind != "f" or not np.any(np.isnan(value)):
            continue
        # A masked NaN does no harm: its log density is replaced, not computed away.
        if np.all(np.isfinite(np.asarray(_masked_log_prob(site)))):
            continue
        raise ValueError(
            f"model: the observed site '{name}' has {int(np.isnan(value).sum())} NaN "
            f"among {value.size} values, so the log density is finite nowhere. "
            "Drop these data, or mask them: with numpyro.handlers.mask(mask=~isnan)."
        )


def _masked_log_prob(site: dict) -> Any:
    numpyro = require("numpyro", "numpyro")
    with warnings.catch_warnings():
        # NumPyro warns of NaN without saying where; our error names the site.
        warnings.simplefilter("ignore")
        log_prob = site["fn"].log_prob(jnp.asarray(site["value"]))
    return numpyro.distributions.util.scale_and_mask(log_prob, site["scale"])


def _check_subsampling(sites: Sites) -> None:
    if not sites.subsampled:
        return
    for name, site in sites.latents.items():
        inside = [
            f.name for f in site["cond_indep_stack"] if f.name in sites.subsampled
        ]
        if inside:
            raise ValueError(
                f"model: the latent site '{name}' lies in the subsampled plate "
                f"'{inside[0]}', so which latents there are changes from step to step. "
                "Use softcvi.targets.AmortisedTarget (labels per datum, sound with "
                "mini-batches), numpyro's SVI with softcvi.adapters.SoftCVILoss and an "
                "amortised guide, or the whole plate."
            )
    warnings.warn(
        f"model: the plate '{sites.subsampled[0]}' subsamples the data of global "
        "latents, for which SoftCVI and SNIS-fKL are biased (posteriors come out too "
        "wide). Use objective=softcvi.ELBO(), or all the data.",
        stacklevel=4,
    )
