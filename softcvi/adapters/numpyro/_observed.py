"""Checks of the data that a NumPyro model observes; each names the site."""

import inspect
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, is_in_loop


def check_shapes(samples: dict[str, dict]) -> tuple[str, ...]:
    """Refuse data that do not fit their distribution, warn of accidental grids.

    NumPyro itself says nothing of these while a model is only run: it broadcasts, or
    fails later without the name of the site.

    Returns:
        Warnings that speak against an answer; all warnings are also given at once.
    """
    serious: list[str] = []
    for name, site in samples.items():
        if site["is_observed"]:
            _refuse_mismatch(name, site)
            serious += _accidental_grid(name, site)
    missing = [text for n, s in samples.items() for text in _missing_plate(n, s)]
    for text in [*serious, *missing]:
        warnings.warn(f"model: {text}", stacklevel=5)
    return tuple(serious)


def check_values(observed: dict[str, dict]) -> None:
    """Refuse NaN among the data, unless they are masked."""
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


def forgotten_data(call: ModelCall, latents: dict[str, dict]) -> tuple[str, ...]:
    """A warning where nothing is observed and an argument of the model is None.

    Args:
        call: The model, none of whose sites is observed.
        latents: Its latent sites.
    """
    absent = _arguments_that_are_none(call)
    if not absent:
        return ()
    sizes = {name: math.prod(jnp.shape(s["value"])) for name, s in latents.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    text = (
        f"nothing is observed, so every site is latent (the largest is '{largest}' "
        f"with {sizes[largest]} values), and the argument {' and '.join(absent)} of "
        "the model is None: the answer is the prior. Pass the data: "
        f"from_numpyro(model, ..., {absent[-1]}=data)."
    )
    warnings.warn(f"model: {text}", stacklevel=4)
    return (text,)


def _arguments_that_are_none(call: ModelCall) -> list[str]:
    args, kwargs = call.arguments()
    try:
        bound = inspect.signature(call.model).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return []
    bound.apply_defaults()
    return [name for name, value in bound.arguments.items() if value is None]


def _batch_of_value(site: dict) -> tuple[int, ...]:
    shape = jnp.shape(site["value"])
    return shape[: len(shape) - len(site["fn"].event_shape)]


def _refuse_mismatch(name: str, site: dict) -> None:
    fn, shape = site["fn"], tuple(jnp.shape(site["value"]))
    event = len(fn.event_shape)
    fits = len(shape) >= event and shape[len(shape) - event :] == tuple(fn.event_shape)
    if fits:
        try:
            np.broadcast_shapes(_batch_of_value(site), tuple(fn.batch_shape))
            return
        except ValueError:
            pass
    plates = [f"'{f.name}' of {f.size}" for f in site["cond_indep_stack"]]
    inside = f", in the plate {' and '.join(plates)}" if plates else ""
    # The type of JAX's own error on shapes that do not go together.
    raise TypeError(
        f"the observed site '{name}' has data of shape {shape} where its "
        f"distribution has shape {tuple(fn.shape())}{inside}. Check the lengths of the "
        "arguments of the model."
    )


def _accidental_grid(name: str, site: dict) -> list[str]:
    """Data of shape (n, 1) against means of shape (n,): all pairs are compared."""
    value, own = _batch_of_value(site), tuple(site["fn"].batch_shape)
    joint = np.broadcast_shapes(value, own)
    if joint in (value, own):
        return []
    return [
        f"the observed site '{name}' has data of shape {value} and a distribution of "
        f"shape {own}, which broadcast to {joint}: every datum is compared with every "
        f"element of the distribution. Reshape one of them, e.g. {name}.reshape({own})."
    ]


def _missing_plate(name: str, site: dict) -> list[str]:
    """NumPyro's own warning, which it gives when its samplers start."""
    value, own = _batch_of_value(site), tuple(site["fn"].batch_shape)
    joint = np.broadcast_shapes(value, own)
    plates = {frame.dim for frame in site["cond_indep_stack"]}
    if not plates or joint not in (value, own):
        return []
    # The first dimension of a site inside ``scan`` is that of time.
    first = 1 if is_in_loop(site) else 0
    dims = range(-len(joint) + first, 0)
    return [
        f"Missing a plate statement for batch dimension {dim} at site '{name}'; "
        "numpyro.util.format_shapes shows the shapes of all sites."
        for dim in dims
        if joint[dim] > 1 and dim not in plates
    ]


def _masked_log_prob(site: dict) -> Any:
    numpyro = require("numpyro", "numpyro")
    with warnings.catch_warnings():
        # NumPyro warns of NaN without saying where; our error names the site.
        warnings.simplefilter("ignore")
        log_prob = site["fn"].log_prob(jnp.asarray(site["value"]))
    return numpyro.distributions.util.scale_and_mask(log_prob, site["scale"])
