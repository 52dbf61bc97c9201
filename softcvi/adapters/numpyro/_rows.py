"""Models with many rows of data: the same log density in blocks of rows.

NumPyro evaluates a model for all rows at once, and for each particle. Where every row
has a term of its own, the model can be run on a block of rows instead: with the rows of
its arguments that belong to the block. Whether that gives the same terms is tried out
with a few rows: a model that looks at other rows than its own is left as it is.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from softcvi._compile import rarely_run
from softcvi.adapters._extras import require
from softcvi.adapters.numpyro._call import ModelCall, is_in_loop, substitute
from softcvi.adapters.numpyro._handlers import drawn_if_improper, with_plates_of
from softcvi.targets._row_sums import RowsInMemory
from softcvi.targets._rows import default_block

# Fewer rows fit into memory for as many particles as a fit evaluates at a time.
MANY_ROWS = 100_000
# Rows that are evaluated together and apart, and where they are divided.
_TRIED, _DIVIDED = 64, 24
_CLOSE = 1e-3


class RowBlocks(eqx.Module):
    """The rows among the arguments of a model, and where their terms are.

    Attributes:
        data: The arguments that have the rows as first axis, and None for the others.
        repeats: How many rows each of them stands for.
        sites: Names of the observed sites with a term for each row.
        whole: How many rows the arguments have.
    """

    data: RowsInMemory
    repeats: Float[Array, ""] | float
    sites: tuple[str, ...] = eqx.field(static=True)
    whole: int = eqx.field(static=True)

    def call_of(self, call: ModelCall, rows: list) -> ModelCall:
        """The model with some rows of its arguments.

        Args:
            call: The model.
            rows: For each array of its arguments these rows, or None.
        """
        count = jax.tree_util.tree_leaves(rows)[0].shape[0]
        some = copy.copy(call)
        pairs = zip(call.arrays, rows, strict=True)
        object.__setattr__(some, "arrays", [a if r is None else r for a, r in pairs])
        model = with_plates_of(call.model, self.whole, count)
        object.__setattr__(some, "model", model)
        return some

    def first(self) -> list:
        """As many rows as a block has: what has no rows is the same for any."""
        count = min(self.data.block, self.data.num_rows)
        return jax.tree_util.tree_map(lambda leaf: leaf[:count], self.data.data)

    def total(self, terms_of: Callable[[list], dict[str, Array]], dtype: Any) -> Scalar:
        """The sum of the terms of all rows.

        Args:
            terms_of: From some rows to the terms of each site.
            dtype: Of the sum.
        """

        def terms(rows: list) -> Float[Array, " rows"]:
            found = terms_of(rows)
            return functools.reduce(jnp.add, (found[name] for name in self.sites))

        total, lost = self.data.total(terms, dtype)
        return self.repeats * (total + lost)

    def thinned(self, count: int) -> "RowBlocks":
        """A sample of the rows, each of which counts several times.

        Args:
            count: How many.
        """
        rows = RowsInMemory(self.data.sample(count), min(self.data.block, count))
        return dataclasses.replace(
            self, data=rows, repeats=jnp.asarray(self.data.num_rows / count)
        )


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
    if count < MANY_ROWS or not sites or not given:
        return None
    if any(isinstance(array, jax.core.Tracer) for array in given):
        return None  # inside a compiled step, which has them as they are
    if any(count in jnp.shape(site["value"]) for site in latents.values()):
        return None  # members with latents of their own
    rows = RowBlocks(RowsInMemory(data, default_block(data)), 1.0, sites, count)
    return rows if _are_one_by_one(rows, call, latents) else None


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


def _are_one_by_one(rows: RowBlocks, call: ModelCall, latents: dict) -> bool:
    """Whether some rows have the same terms alone as among others."""
    some = jax.tree_util.tree_map(jnp.asarray, rows.data.sample(_TRIED))
    parts = [
        rows.call_of(call, jax.tree_util.tree_map(lambda leaf, p=part: leaf[p], some))
        for part in (slice(None), slice(_DIVIDED), slice(_DIVIDED, None))
    ]
    values = {name: site["value"] for name, site in latents.items()}
    try:
        whole, *divided = (_terms_at(part, values) for part in parts)
    except Exception:
        return False  # the model needs all of its rows
    of_rows = [[part.pop(name) for name in rows.sites] for part in (whole, *divided)]
    for one, first, second in zip(*of_rows, strict=True):
        if not _is_close(one, np.concatenate([first, second])):
            return False
    return all(_is_close(whole[name], part[name]) for name in whole for part in divided)


@functools.partial(rarely_run, effort=0)
def _terms_at(call: ModelCall, values: dict[str, Any]) -> dict[str, Array]:
    return site_terms(call.trace(substitute(values), drawn_if_improper))


def _is_close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, _CLOSE, _CLOSE, equal_nan=True)


def _length(value: Any) -> int:
    shape = () if value is None else jnp.shape(value)
    return shape[0] if shape else 0


def _has_rows(site: dict, count: int) -> bool:
    value, fn = jnp.shape(site["value"]), site["fn"]
    has_one_axis = len(value) - len(fn.event_shape) == 1 == len(fn.batch_shape)
    return has_one_axis and value[0] == count and not is_in_loop(site)
