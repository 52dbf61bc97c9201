"""Do a NumPyro model and guide go together, and which plates do they share."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from softcvi.adapters._extras import require

_REFUSED = {
    "AutoDelta": "it is a point and has no density to contrast; use Trace_ELBO",
    "AutoLaplaceApproximation": (
        "it only moves a point and takes its covariance from the Hessian afterwards, "
        "so there is nothing for a classifier to learn; use Trace_ELBO, or AutoNormal"
    ),
    "AutoBNAFNormal": (
        "its flow has no inverse, so a given draw cannot be scored; use AutoIAFNormal"
    ),
    "AutoDAIS": "its density is only known through a bound; use Trace_ELBO",
    "AutoSemiDAIS": "its density is only known through a bound; use Trace_ELBO",
}


def check_guide_class(guide: Callable) -> None:
    """Refuse NumPyro's guides that have no density SoftCVI could train."""
    inner: Any = guide
    while inner is not None:
        for cls in type(inner).__mro__:
            if cls.__name__ in _REFUSED and cls.__module__.startswith("numpyro"):
                raise ValueError(
                    f"guide: {cls.__name__} cannot be trained by SoftCVI: "
                    f"{_REFUSED[cls.__name__]}."
                )
        inner = getattr(inner, "fn", None)


def check_match(model_trace: dict[str, dict], guide_trace: dict[str, dict]) -> None:
    """Every latent site of the model needs its site in the guide, and vice versa."""
    check_names(latent_names(model_trace), guide_trace)
    for name, site in guide_trace.items():
        if site["type"] != "sample" or name not in model_trace:
            continue
        needed, given = (jnp.shape(s["value"]) for s in (model_trace[name], site))
        if needed != given:
            raise ValueError(
                f"guide: site '{name}' has shape {given} where the model has {needed}."
            )


def check_names(latents: list[str], guide_trace: dict[str, dict]) -> None:
    """The guide's own sites must be the model's latent ones."""
    samples = {n: s for n, s in guide_trace.items() if s["type"] == "sample"}
    auxiliary = [n for n, s in samples.items() if s["infer"].get("is_auxiliary")]
    own = [n for n in samples if n not in auxiliary and not samples[n]["is_observed"]]
    missing = [name for name in latents if name not in own]
    unknown = [name for name in own if name not in latents]
    if missing or unknown:
        parts = [f"has no site {missing}"] * bool(missing)
        parts += [f"has {unknown}, which the model has not"] * bool(unknown)
        raise ValueError(
            f"guide: {' and '.join(parts)}. The model's latent sites are {latents}; "
            "check the spelling, and mark helper sites infer={'is_auxiliary': True}."
        )
    points = [n for n in own if is_delta(samples[n]["fn"])]
    if points and not auxiliary:
        raise ValueError(
            f"guide: {points} are Delta sites: a point has no density to contrast. "
            "Give them a distribution, or use Trace_ELBO."
        )


def latent_names(model_trace: dict[str, dict]) -> list[str]:
    """Names of the latent sites in a model's trace."""
    return [
        name
        for name, site in model_trace.items()
        if site["type"] == "sample"
        and not site["is_observed"]
        and not is_delta(site["fn"])
    ]


def is_delta(fn: Any) -> bool:
    """Whether a distribution is a point mass, under any wrapping."""
    numpyro = require("numpyro", "numpyro")
    while fn is not None:
        if isinstance(fn, numpyro.distributions.Delta):
            return True
        fn = getattr(fn, "base_dist", None)
    return False


def common_plates(
    model_trace: dict[str, dict], guide_trace: dict[str, dict]
) -> tuple[frozenset[int], float, str | None]:
    """Dimensions of plates that hold every site, their scale, and a biased plate.

    Returns:
        The dimensions, the factor by which subsampling scales them, and the name of a
        plate that subsamples without holding every site (None if there is none).
    """
    stacks = [
        set(site["cond_indep_stack"])
        for trace in (model_trace, guide_trace)
        for site in trace.values()
        if site["type"] == "sample"
    ]
    shared = set.intersection(*stacks) if stacks else set()
    scale, biased = 1.0, None
    for frame in set().union(*stacks):
        size = model_trace[frame.name]["args"][0] if frame.name in model_trace else 0
        if size <= frame.size:
            continue
        if frame in shared:
            scale = scale * size / frame.size
        else:
            biased = frame.name
    return frozenset(frame.dim for frame in shared), scale, biased


def reduced_log_prob(site: dict, dims: frozenset[int]) -> Array:
    """Log density of a site summed over all dimensions but those of some plates."""
    numpyro = require("numpyro", "numpyro")
    if site["intermediates"]:
        log_prob = site["fn"].log_prob(site["value"], site["intermediates"])
    else:
        log_prob = site["fn"].log_prob(site["value"])
    log_prob = numpyro.distributions.util.scale_and_mask(log_prob, site["scale"])
    return _reduced(log_prob, dims)


def unconstrained(
    model_trace: dict[str, dict], dims: frozenset[int]
) -> tuple[dict[str, Array], Array]:
    """Latents on the real line, and ``log |dx/du|`` by element of the shared plates."""
    numpyro = require("numpyro", "numpyro")
    total = jnp.zeros(())
    values: dict[str, Array] = {}
    for name in latent_names(model_trace):
        site = model_trace[name]
        values[name] = site["value"]
        if site["fn"].support.is_discrete:
            continue
        transform = numpyro.distributions.biject_to(site["fn"].support)
        x = jax.lax.stop_gradient(site["value"])
        values[name] = transform.inv(x)
        log_det = transform.log_abs_det_jacobian(values[name], x)
        batch = jnp.ndim(x) - len(site["fn"].event_shape)
        extra = jnp.ndim(log_det) - batch
        log_det = jnp.sum(log_det, axis=tuple(range(-extra, 0))) if extra else log_det
        total = total + _reduced(log_det, dims)
    return jax.lax.stop_gradient((values, total))


def _reduced(values: Array, dims: frozenset[int]) -> Array:
    away = [i for i in range(-jnp.ndim(values), 0) if i not in dims]
    return jnp.sum(values, axis=tuple(away)) if away else values
