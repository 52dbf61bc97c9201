"""Discrete sites marked for enumeration: summed out of the density, drawn afterwards.

NumPyro marks them by ``infer={"enumerate": "parallel"}`` or ``config_enumerate``. Its
own functions for them need the package funsor.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.adapters._extras import require

# Odd, so that no bit of a word is lost: Knuth's multiplicative hash.
_MULTIPLIER = np.uint32(2654435761)


def summed_sites(latents: dict[str, dict]) -> tuple[str, ...]:
    """Names of the latent sites that are marked, if there are others beside them.

    Args:
        latents: The latent sites of a model.
    """
    marked = [
        name
        for name, site in latents.items()
        if site["infer"].get("enumerate") == "parallel"
        and site["fn"].has_enumerate_support
    ]
    if not marked or len(marked) == len(latents):
        return ()
    require("funsor", "numpyro")
    return tuple(marked)


def summed_log_density(
    model: Callable, args: tuple, kwargs: dict[str, Any], num_dims: int
) -> Scalar:
    """Log density of a model without free sites, summed over the marked ones.

    Args:
        model: The model, with all other latents substituted.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        num_dims: Batch axes that its sites have, on the left of which there is room.
    """
    enumeration = require("numpyro.contrib.funsor", "numpyro")
    enumerated = enumeration.enum(model, -num_dims - 1)
    with require("numpyro", "numpyro").validation_enabled(False):
        return enumeration.log_density(enumerated, args, kwargs, {})[0]


def with_draws(model: Callable, key: PRNGKeyArray) -> Callable:
    """The model with the marked sites drawn given data and all other latents.

    Args:
        model: The model, with all other latents substituted.
        key: Random key.
    """
    enumeration = require("numpyro.contrib.funsor", "numpyro")
    return enumeration.infer_discrete(model, temperature=1, rng_key=key)


def key_of(values: dict[str, Array]) -> PRNGKeyArray:
    """A key that follows from a draw, so that the same draw has the same sites.

    Args:
        values: The draw.
    """
    total = jnp.zeros((), jnp.uint32)
    for value in values.values():
        single = jnp.ravel(jnp.asarray(value)).astype(jnp.float32)
        words = jax.lax.bitcast_convert_type(single, jnp.uint32)
        places = 2 * jnp.arange(words.size, dtype=jnp.uint32) + 1
        total = total * _MULTIPLIER + jnp.sum(words * places, dtype=jnp.uint32)
    return jax.random.fold_in(jax.random.key(0), total)


def num_batch_dims(trace: dict[str, dict]) -> int:
    """The largest number of batch axes of a site, plates included.

    Args:
        trace: The trace of a model.
    """
    sites = [site for site in trace.values() if site["type"] == "sample"]
    frames = [-f.dim for site in sites for f in site["cond_indep_stack"]]
    return max([0, *frames, *(len(site["fn"].batch_shape) for site in sites)])
