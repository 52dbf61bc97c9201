"""Models with many rows of data: the same log density in blocks of rows.

The model is run on a block of the rows: with those rows of its arguments.
"""

import copy
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from softcvi.adapters import _row_blocks
from softcvi.adapters._extras import require
from softcvi.adapters._row_blocks import RowBlocks, are_one_by_one, row_blocks
from softcvi.adapters.numpyro._call import ModelCall, is_in_loop, substitute
from softcvi.adapters.numpyro._handlers import drawn_if_improper, with_plates_of


def with_rows(call: ModelCall, whole: int, rows: list) -> ModelCall:
    """The model with some rows of its arguments.

    Args:
        call: The model.
        whole: How many rows its arguments have.
        rows: For each array of its arguments these rows, or None.
    """
    count = jax.tree_util.tree_leaves(rows)[0].shape[0]
    some = copy.copy(call)
    pairs = zip(call.arrays, rows, strict=True)
    object.__setattr__(some, "arrays", [a if r is None else r for a, r in pairs])
    model = with_plates_of(call.model, whole, count)
    object.__setattr__(some, "model", model)
    return some


def rows_of(
    call: ModelCall, observed: dict[str, dict], latents: dict[str, dict]
) -> RowBlocks | None:
    """The rows of a model's data; None where they are few, or not one by one.

    Args:
        call: The model.
        observed: Its observed sites.
        latents: Its latent sites.
    """
    count = max((_length(site["value"]) for site in observed.values()), default=0)
    sites = tuple(n for n, s in observed.items() if _has_rows(s, count))
    data = [array if _length(array) == count else None for array in call.arrays]
    given = [array for array in data if array is not None]
    if count < _row_blocks.MANY_ROWS or not sites or not given:
        return None
    if any(isinstance(array, jax.core.Tracer) for array in given):
        return None  # inside a compiled step, which has them as they are
    if any(count in jnp.shape(site["value"]) for site in latents.values()):
        return None  # members with latents of their own
    values = {name: site["value"] for name, site in latents.items()}

    def terms_of(some: list) -> dict[str, Array]:
        few = with_rows(call, count, some)
        return site_terms(few.trace(substitute(values), drawn_if_improper))

    rows = row_blocks(data, sites, count)
    return rows if are_one_by_one(rows, terms_of) else None


def site_terms(trace: dict[str, dict]) -> dict[str, Array]:
    """Log densities of the sample sites of a trace, scaled and masked.

    Args:
        trace: The trace.
    """
    scale_and_mask = require("numpyro", "numpyro").distributions.util.scale_and_mask
    return {
        name: scale_and_mask(log_prob_of(site), site["scale"])
        for name, site in trace.items()
        if site["type"] == "sample"
    }


def log_prob_of(site: dict) -> Array:
    """Log density of a site, for each member of its batch.

    Args:
        site: Of a trace.
    """
    if site["intermediates"]:
        return site["fn"].log_prob(site["value"], site["intermediates"])
    return site["fn"].log_prob(site["value"])


def _length(value: Any) -> int:
    shape = () if value is None else jnp.shape(value)
    return shape[0] if shape else 0


def _has_rows(site: dict, count: int) -> bool:
    value, fn = jnp.shape(site["value"]), site["fn"]
    has_one_axis = len(value) - len(fn.event_shape) == 1 == len(fn.batch_shape)
    return has_one_axis and value[0] == count and not is_in_loop(site)
