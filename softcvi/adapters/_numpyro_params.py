"""``numpyro.param`` sites as unconstrained arrays, and back."""

from typing import Any

import jax
import jax.numpy as jnp

from softcvi.adapters._extras import require


def split_params(trace: dict[str, dict]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Unconstrained values of the param sites of a trace, with their transforms.

    A param that is a pytree (a Flax module's) is taken as it is.
    """
    numpyro = require("numpyro", "numpyro")
    params: dict[str, Any] = {}
    transforms: dict[str, Any] = {}
    for name, site in trace.items():
        if site["type"] != "param":
            continue
        if len(jax.tree_util.tree_leaves(site["value"])) != 1:
            params[name] = site["value"]
            continue
        real = numpyro.distributions.constraints.real
        constraint = site["kwargs"].get("constraint", real)
        transforms[name] = numpyro.distributions.biject_to(constraint)
        params[name] = transforms[name].inv(jnp.asarray(site["value"]))
    return params, transforms


def constrained(params: dict[str, Any], transforms: dict[str, Any]) -> dict[str, Any]:
    """Values of the param sites as the model sees them."""
    return {
        name: transforms[name](value) if name in transforms else value
        for name, value in params.items()
    }
