"""Many rows of a model's data, evaluated in blocks.

Programs for probabilistic models evaluate a likelihood for all rows at once, and for
each particle. Where every row has a term of its own, it can be evaluated for a block of
rows instead. Whether that gives the same terms is tried out with a few rows: a model
that looks at other rows than its own is left as it is.
"""

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
from softcvi.adapters._model_target import AbstractModelTarget
from softcvi.starts._double import CannotWidenError, double_precision, evaluate_widened
from softcvi.targets._row_sums import RowsInMemory
from softcvi.targets._rows import default_block, num_thinned, particles_at_once

# Fewer rows fit into memory for as many particles as a fit evaluates at a time.
MANY_ROWS = 100_000
# Rows that are evaluated together and apart, and where they are divided.
_TRIED, _DIVIDED = 64, 24
# In double precision: what other rows add may be small beside a term.
_CLOSE = 1e-9


class RowBlocks(eqx.Module):
    """The rows of a model's data, and where their terms are.

    Attributes:
        data: Arrays that have the rows as first axis, among None for others.
        repeats: How many rows each of them stands for.
        sites: Names of the variables with a term for each row.
        whole: How many rows the data have.
    """

    data: RowsInMemory
    repeats: Float[Array, ""] | float
    sites: tuple[str, ...] = eqx.field(static=True)
    whole: int = eqx.field(static=True)

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


class AbstractRowsTarget(AbstractModelTarget):
    """A target whose data may have many rows, which are then evaluated in blocks."""

    rows: eqx.AbstractVar[RowBlocks | None]

    @property
    def particles_at_once(self) -> int | None:
        return None if self.rows is None else particles_at_once(self.rows.data)

    def thinned(self) -> "tuple[AbstractRowsTarget, float] | None":
        if self.rows is None:
            return None
        count = num_thinned(self.rows.data, self.structure.size)
        if count is None:
            return None
        few = dataclasses.replace(self, rows=self.rows.thinned(count))
        return few, self.rows.whole / count


def row_blocks(data: list, sites: tuple[str, ...], whole: int) -> RowBlocks:
    """All rows of some data.

    Args:
        data: Arrays that have the rows as first axis, among None for others.
        sites: Names of the variables with a term for each row.
        whole: How many rows the data have.
    """
    return RowBlocks(RowsInMemory(data, default_block(data)), 1.0, sites, whole)


def are_one_by_one(
    rows: RowBlocks, terms_of: Callable[[list], dict[str, Array]]
) -> bool:
    """Whether some rows have the same terms alone as among others.

    Args:
        rows: All rows.
        terms_of: From some rows to the terms of each site, and to others that are the
            same for any rows.
    """
    some = jax.tree_util.tree_map(jnp.asarray, rows.data.sample(_TRIED))
    parts = [
        jax.tree_util.tree_map(lambda leaf, p=part: leaf[p], some)
        for part in (slice(None), slice(_DIVIDED), slice(_DIVIDED, None))
    ]
    try:
        whole, *divided = (_in_double(terms_of, part) for part in parts)
    except Exception:
        return False  # the model needs all of its rows
    of_rows = [[part.pop(name) for name in rows.sites] for part in (whole, *divided)]
    for together, first, second in zip(*of_rows, strict=True):
        # One term for each row, finite for most: infinite ones are all alike.
        if together.shape != (_TRIED,) or np.mean(np.isfinite(together)) < 0.5:
            return False
        if not _is_close(together, np.concatenate([first, second])):
            return False
    return all(_is_close(whole[name], part[name]) for name in whole for part in divided)


def _in_double(
    terms_of: Callable[[list], dict[str, Array]], rows: list
) -> dict[str, np.ndarray]:
    """Terms in double precision, where the program for them can be widened."""
    program, shape = jax.make_jaxpr(terms_of, return_shape=True)(rows)
    leaves = jax.tree_util.tree_leaves(rows)

    @functools.partial(rarely_run, effort=0)
    def computed(consts: list, leaves: list) -> list:
        return evaluate_widened(program.jaxpr, consts, *leaves)

    with double_precision():
        found = [np.asarray(value) for value in computed(program.consts, leaves)]
    if any(value.dtype == np.float32 for value in found):
        raise CannotWidenError("some terms are tied to single precision.")
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shape), found)


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, _CLOSE, _CLOSE, equal_nan=True)
