"""Which sites of a NumPyro model are latent, observed, discrete; and their checks."""

import dataclasses
import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from softcvi._compile import rarely_run
from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, draw_improper
from softcvi.adapters.numpyro._handlers import drawn_if_improper, whole_plates
from softcvi.adapters.numpyro._match import latent_names
from softcvi.adapters.numpyro._observed import (
    check_shapes,
    check_values,
    forgotten_data,
)


class Sites(eqx.Module):
    """What one run of a model reveals about its sites.

    Attributes:
        trace: The trace, with concrete values drawn from the prior.
        latents: The latent sites.
        observed: Observed sites with data, so without ``factor`` statements.
        subsampled: Names of the plates that subsample.
        warnings: What is suspicious about the model, and speaks against an answer.
    """

    trace: dict[str, dict]
    latents: dict[str, dict]
    observed: dict[str, dict]
    subsampled: tuple[str, ...]
    warnings: tuple[str, ...]


def latent_sites(call: ModelCall) -> dict[str, dict]:
    """The latent sites of a model that has been checked before."""
    trace = _run_once(call)
    return {name: trace[name] for name in latent_names(trace)}


def find_sites(call: ModelCall) -> Sites:
    """Run the model once on a prior draw, sort its sites and check them."""
    trace = _run_once(call)
    _refuse_mutable(trace)
    sites = _sorted(trace)
    samples = {n: s for n, s in trace.items() if s["type"] == "sample"}
    is_prior = not any(site["is_observed"] for site in samples.values())
    suspicious = forgotten_data(call, sites.latents) if is_prior else ()
    whole = _whole_samples(call) if sites.subsampled else samples
    suspicious += check_shapes(whole)
    check_values(sites.observed)
    _check_subsampling(sites)
    return dataclasses.replace(sites, warnings=suspicious)


def unchecked_sites(call: ModelCall) -> Sites:
    """The sites of a model inside a compiled step, where data have no values."""
    return _sorted(call.trace(drawn_if_improper))


def _sorted(trace: dict[str, dict]) -> Sites:
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
    observed = {n: s for n, s in samples.items() if _is_data(s)}
    return Sites(trace, latents, observed, subsampled, ())


def _refuse_mutable(trace: dict[str, dict]) -> None:
    names = [name for name, site in trace.items() if site["type"] == "mutable"]
    if names:
        raise ValueError(
            f"model: {names} are mutable state (numpyro.primitives.mutable, or a "
            "module with batch statistics), which every evaluation would change. "
            "Freeze it: flax_module(..., mutable=[]), nnx_module of a model in "
            "evaluation mode, or pass the state as an argument of the model."
        )


def _run_once(call: ModelCall) -> dict[str, dict]:
    try:
        return _compiled_prior_draw(call)
    except Exception:
        # What cannot be compiled may still run, and an error then names its line.
        return _prior_draw(call)


def _whole_samples(call: ModelCall) -> dict[str, dict]:
    """The sample sites with all the data of every plate, as the verdict uses them."""
    found: dict[str, dict] = {}

    def run(call: ModelCall) -> int:
        trace = call.trace(whole_plates, drawn_if_improper)
        found.update({n: s for n, s in trace.items() if s["type"] == "sample"})
        return 0

    eqx.filter_eval_shape(run, call)  # shapes are enough
    return found


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
