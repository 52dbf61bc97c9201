"""Sums over the rows of a data set, block by block, wherever the rows are."""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi._compile import put
from softcvi.targets._amortised import num_rows

_ROWS = "rows"
_SymbolicZero = jax.custom_derivatives.SymbolicZero
_SAMPLE_SEED = 20_26
# Rows that the identity of a fit is made from, beside a checksum of all.
_FEW = 16


class AbstractRows(eqx.Module):
    """Rows of a data set that can be summed over.

    Attributes:
        num_rows: How many there are.
        block: Rows that are taken at a time.
    """

    num_rows: eqx.AbstractVar[int]
    block: eqx.AbstractVar[int]

    @abstractmethod
    def total(
        self, terms: Callable[[PyTree], Array], dtype: Any
    ) -> tuple[Scalar, Scalar]:
        """The sum of one term per row, and what rounding took away from it.

        Args:
            terms: From a block of rows to one term for each of them.
            dtype: Of the sum.
        """

    @abstractmethod
    def take(self, index: np.ndarray) -> PyTree:
        """Some of the rows, as arrays of the host.

        Args:
            index: Their numbers, in rising order.
        """

    def sample(self, count: int) -> PyTree:
        """Rows from all parts of the data set, one at random from each part."""
        edges = np.linspace(0, self.num_rows, count + 1).astype(np.int64)
        rng = np.random.default_rng(_SAMPLE_SEED)
        return self.take(rng.integers(edges[:-1], edges[1:]))


class RowsInMemory(AbstractRows):
    """Rows in the memory of one device.

    Args:
        data: Pytree of arrays with the rows as first axis.
        block: Rows that are taken at a time.
    """

    data: PyTree
    num_rows: int = eqx.field(static=True)
    block: int = eqx.field(static=True)

    def __init__(self, data: PyTree, block: int):
        # On the device once, not with every call.
        self.data = jax.tree_util.tree_map(
            lambda leaf: leaf if isinstance(leaf, jax.Array) else put(np.asarray(leaf)),
            data,
        )
        self.num_rows = num_rows(data)
        self.block = block

    def total(
        self, terms: Callable[[PyTree], Array], dtype: Any
    ) -> tuple[Scalar, Scalar]:
        return _sum_in_blocks(terms, self.data, self.block, dtype)

    def take(self, index: np.ndarray) -> PyTree:
        return jax.tree_util.tree_map(
            lambda leaf: np.asarray(_rows_at(leaf, index)), self.data
        )


class RowsOnDevices(AbstractRows):
    """Rows spread over devices, each of which sums its own.

    Args:
        data: Pytree of arrays with the rows as first axis.
        block: Rows that are taken at a time.
        devices: The devices.
    """

    data: PyTree
    num_rows: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    digest: str = eqx.field(static=True)

    def __init__(self, data: PyTree, block: int, devices: Sequence[jax.Device]):
        self.data = _spread(data, devices)
        self.num_rows = num_rows(data)
        self.block = block
        self.digest = _digest(data)

    def in_one_place(self) -> RowsInMemory:
        """A few of the rows, which stand for all in the identity of a fit."""
        few = self.sample(min(self.num_rows, _FEW))
        return RowsInMemory(few, self.block)

    def total(
        self, terms: Callable[[PyTree], Array], dtype: Any
    ) -> tuple[Scalar, Scalar]:
        def on_one_device(part: tuple[PyTree, Array]) -> tuple[Scalar, Scalar]:
            return _sum_in_blocks(
                lambda rows: jnp.where(rows[1], terms(rows[0]), 0.0),
                part,
                self.block,
                dtype,
            )

        shape = jax.tree_util.tree_leaves(self.data)[0].shape[:2]
        is_real = (jnp.arange(math.prod(shape)) < self.num_rows).reshape(shape)
        # The leading axis is that of the devices, so that each has a row of its own.
        totals, lost = jax.vmap(on_one_device)((self.data, is_real))
        return jnp.sum(totals), jnp.sum(lost)

    def take(self, index: np.ndarray) -> PyTree:
        sharding = jax.tree_util.tree_leaves(self.data)[0].sharding
        # On every device, so that each of several processes has them.
        everywhere = NamedSharding(sharding.mesh, PartitionSpec())

        def taken(leaf: Array) -> np.ndarray:
            where = np.divmod(index, leaf.shape[1])
            return np.asarray(jax.jit(_at, out_shardings=everywhere)(leaf, *where))

        return jax.tree_util.tree_map(taken, self.data)


@jax.jit
def _rows_at(leaf: Array, index: Array) -> Array:
    return leaf[index]


def _at(leaf: Array, device: Array, row: Array) -> Array:
    return leaf[device, row]


def _digest(data: PyTree) -> str:
    """A checksum of the data, wherever they go."""
    digest = hashlib.sha256()
    for leaf in jax.tree_util.tree_leaves(data):
        digest.update(np.ascontiguousarray(leaf).view(np.uint8).reshape(-1).data)
    return digest.hexdigest()


def _spread(data: PyTree, devices: Sequence[jax.Device]) -> PyTree:
    """Data with a leading axis of devices, equally many rows on each."""
    if not len(devices):
        raise ValueError("devices: must name at least one device; got none.")
    mesh = Mesh(list(devices), (_ROWS,))
    sharding = NamedSharding(mesh, PartitionSpec(_ROWS))
    missing = -num_rows(data) % mesh.size

    def placed(leaf: Array) -> Array:
        if missing:
            # Copies of a real row: their terms are finite where the others are.
            leaf = np.concatenate([leaf, *[leaf[-1:]] * missing])
        return jax.device_put(leaf.reshape(mesh.size, -1, *leaf.shape[1:]), sharding)

    return jax.tree_util.tree_map(placed, data)


def _sum_in_blocks(
    terms: Callable[[PyTree], Array],
    data: PyTree,
    block: int,
    dtype: Any,
) -> tuple[Scalar, Scalar]:
    """The sum over rows and what it lost, in memory bounded by the block."""
    rows = num_rows(data)
    block = min(block, rows)
    whole = rows // block * block

    def block_sum(start: Array) -> Scalar:
        # Sliced where it is used: a reshaped copy would double the data.
        part = jax.tree_util.tree_map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, block), data
        )
        return folded_sum(terms(part))

    width = np.int32 if whole <= np.iinfo(np.int32).max else np.int64
    starts = np.arange(0, whole, block).astype(width)
    total, lost = sum_of_blocks(block_sum, starts, dtype)
    if whole < rows:
        rest = jax.tree_util.tree_map(lambda leaf: leaf[whole:], data)
        total, lost = compensated(total, lost, folded_sum(terms(rest)))
    return total, lost


def sum_of_blocks(
    block_sum: Callable[[Array], Scalar], blocks: np.ndarray, dtype: Any
) -> tuple[Scalar, Scalar]:
    """The sum over blocks and what it lost, with derivatives from the same pass.

    JAX would go through the blocks once more for a gradient, and evaluate each twice
    more. Here the pass that is differentiated adds up the blocks' own gradients.

    Args:
        block_sum: The sum of one block, by its number; what it is differentiated by
            is read from its closure.
        blocks: Their numbers.
        dtype: Of the sum.
    """
    # With whatever it reads as its arguments: also integers, which the program of a
    # derivative would otherwise look for in the one that it was made in.
    program = jax.make_jaxpr(block_sum)(blocks[0])

    def converted(number: Array, *values: Array) -> Scalar:
        [value] = jax.core.eval_jaxpr(program.jaxpr, values, number)
        return value

    @jax.custom_jvp
    def total_of(*values: Array) -> tuple[Scalar, Scalar]:
        def add(carry: tuple[Array, Array], number: Array):
            return compensated(*carry, converted(number, *values)), None

        zero = jnp.zeros((), dtype)
        return jax.lax.scan(add, (zero, zero), jnp.asarray(blocks))[0]

    def with_tangent(values: Any, tangents: Any) -> Any:
        is_moved = [not isinstance(t, _SymbolicZero) for t in tangents]
        moved = [v for v, m in zip(values, is_moved, strict=True) if m]
        given = [t for t, m in zip(tangents, is_moved, strict=True) if m]

        def of_block(moved: list[Array], number: Array) -> Scalar:
            new = iter(moved)
            pairs = zip(values, is_moved, strict=True)
            return converted(number, *(next(new) if m else v for v, m in pairs))

        def add(carry: tuple, number: Array):
            (total, lost), slopes = carry
            value, more = jax.value_and_grad(of_block)(moved, number)
            slopes = [a + b for a, b in zip(slopes, more, strict=True)]
            return (compensated(total, lost, value), slopes), None

        zero = jnp.zeros((), dtype)
        first = ((zero, zero), [jnp.zeros_like(v) for v in moved])
        (sums, slopes), _ = jax.lax.scan(add, first, jnp.asarray(blocks))
        pairs = zip(slopes, given, strict=True)
        return sums, (sum((jnp.sum(s * t) for s, t in pairs), zero), zero)

    total_of.defjvp(with_tangent, symbolic_zeros=True)
    return total_of(*program.consts)


def folded_sum(values: Float[Array, " n"]) -> Scalar:
    """A sum of sums: rounding grows with the square root of the number of terms.

    Args:
        values: The terms.
    """
    # Of columns, which the compiler adds side by side. Halves of halves are more exact
    # and were four times slower: their terms were computed more than once.
    width = 1 << (max(values.shape[0], 1).bit_length() // 2)
    padded = jnp.pad(values, (0, -values.shape[0] % width))
    return jnp.sum(jnp.sum(padded.reshape(-1, width), axis=0))


def compensated(total: Array, lost: Array, term: Array) -> tuple[Array, Array]:
    """Neumaier's sum: what a sum loses is kept beside it and added at the end.

    Args:
        total: The sum so far.
        lost: What it has lost so far.
        term: What to add.
    """
    new = total + term
    # The barrier keeps the compiler from cancelling what is zero in exact arithmetic.
    fixed, big, small = jax.lax.stop_gradient((new, total, term))
    fixed = jax.lax.optimization_barrier(fixed)
    left = jnp.where(jnp.abs(big) >= jnp.abs(small), big, small)
    right = jnp.where(jnp.abs(big) >= jnp.abs(small), small, big)
    return new, lost + ((left - fixed) + right)
