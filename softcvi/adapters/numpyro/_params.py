"""``numpyro.param`` sites as unconstrained arrays, and back."""

from typing import Any

import jax
import jax.numpy as jnp

from softcvi.adapters._extras import require


def split_params(
    trace: dict[str, dict], given: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Unconstrained values of the param sites of a trace, with their transforms.

    A param that is a pytree (a Flax module's) is taken as it is.

    Args:
        trace: The trace of a model or guide.
        given: Values that replace those of the trace.
    """
    numpyro = require("numpyro", "numpyro")
    params: dict[str, Any] = {}
    transforms: dict[str, Any] = {}
    for name, site in trace.items():
        if site["type"] != "param":
            continue
        value = (given or {}).get(name, site["value"])
        if len(jax.tree_util.tree_leaves(value)) != 1:
            params[name] = value
            continue
        real = numpyro.distributions.constraints.real
        constraint = site["kwargs"].get("constraint", real)
        transforms[name] = numpyro.distributions.biject_to(constraint)
        params[name] = transforms[name].inv(jnp.asarray(value))
    return params, transforms


def constrained(params: dict[str, Any], transforms: dict[str, Any]) -> dict[str, Any]:
    """Values of the param sites as the model sees them."""
    return {
        name: transforms[name](value) if name in transforms else value
        for name, value in params.items()
    }
