"""A likelihood that is a sum over rows, in bounded memory and to the last digits."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.targets._amortised import num_rows
from softcvi.targets._base import AbstractTarget
from softcvi.targets._checked import as_log_density
from softcvi.targets._space import AbstractSpace, ModelSpace
from softcvi.targets._structure import Structure, as_structure

_ROWS = "rows"
# Terms of all particles and the rows of a block, 128 MB of them in single precision.
_TERMS_AT_ONCE = 1 << 25


class DataTarget(AbstractTarget):
    """A posterior whose log likelihood is a sum over the rows of a data set.

    Rows are taken in blocks: memory is bounded by the block, for gradients too. What
    is summed are *differences* to the log likelihood of each row at a reference point,
    and the sum is compensated: labels need differences of order one, where single
    precision steps by 0.06 at a sum of a million and by 8 at a hundred million. The
    log density is therefore known up to the log likelihood at the reference point,
    which ``log_density_at_reference`` gives and an evidence must add.

    Args:
        log_prior: Function of one particle in model coordinates.
        log_likelihood: Function ``(particle, rows) -> array`` of a block of rows: one
            log likelihood per row.
        like: One particle in the fitting space.
        data: Pytree of arrays with the rows as first axis.
        reference: A particle in model coordinates near the posterior, for example a
            mode; without it the sums are compensated, but of the values themselves.
        block: Rows per block; by default as many as suit the device.
        devices: Devices to spread the rows over, such as ``jax.local_devices()``: each
            sums its own rows. By default the data stay where they are.
        space: Where the fit happens.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.targets.DataTarget(
        ...     lambda t: -0.5 * t**2,
        ...     lambda t, x: -0.5 * (x - t) ** 2,
        ...     like=jnp.zeros(()), data=jnp.ones(10), reference=jnp.zeros(()),
        ... )
        >>> float(target.log_density(jnp.ones(())))
        4.5
    """

    log_prior: Callable
    log_likelihood: Callable
    data: PyTree
    reference: PyTree
    space: AbstractSpace
    structure: Structure = eqx.field(static=True)
    block: int = eqx.field(static=True)
    num_rows: int = eqx.field(static=True)
    is_spread: bool = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True)

    def __init__(
        self,
        log_prior: Callable,
        log_likelihood: Callable,
        like: PyTree,
        *,
        data: PyTree,
        reference: PyTree = None,
        block: int | None = None,
        devices: Sequence[jax.Device] | None = None,
        space: AbstractSpace | None = None,
    ):
        block = _default_block(data) if block is None else block
        if isinstance(block, bool) or not isinstance(block, int) or block < 1:
            raise ValueError(f"block: must be an integer of at least 1; got {block!r}.")
        rows = {leaf.shape[0] for leaf in jax.tree_util.tree_leaves(data)}
        if len(rows) != 1:
            raise ValueError(
                f"data: all arrays need one leading axis of equal length; got {rows}."
            )
        self.log_prior = log_prior
        self.log_likelihood = log_likelihood
        self.num_rows = num_rows(data)
        self.is_spread = devices is not None
        # On the device once, not with every call.
        self.data = (
            jax.tree_util.tree_map(jnp.asarray, data)
            if devices is None
            else _spread(data, devices)
        )
        self.reference = reference
        self.space = ModelSpace() if space is None else space
        self.structure = as_structure(like)
        self.block = block
        self.has_gradient = self.structure.is_continuous

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        x, log_det = self.space.to_model_and_log_det(particle)
        prior = as_log_density(self.log_prior(x), "log_prior")

        def terms(rows: PyTree) -> Float[Array, " rows"]:
            values = self._of_rows(x, rows)
            if self.reference is None:
                return values
            return values - self._of_rows(self.reference, rows)

        return prior + self._sum(terms) + log_det

    @property
    def particles_at_once(self) -> int:
        return max(1, _TERMS_AT_ONCE // self.block)

    def log_density_at_reference(self) -> Scalar:
        """Log likelihood of all rows at the reference point; zero without one."""
        if self.reference is None:
            return jnp.zeros(())
        return self._sum(lambda rows: self._of_rows(self.reference, rows))

    def _of_rows(self, x: PyTree, rows: PyTree) -> Float[Array, " rows"]:
        values = self.log_likelihood(x, rows)
        count = num_rows(rows)
        if jnp.shape(values) != (count,):
            raise ValueError(
                f"log_likelihood: must return one value per row, shape ({count},); it "
                f"has shape {jnp.shape(values)}. Do not sum over rows."
            )
        return as_log_density(values, "log_likelihood")

    def _sum(self, terms: Callable[[PyTree], Array]) -> Scalar:
        """The sum over all rows, block by block, on each device its own."""
        dtype = jnp.result_type(*self.structure.dtypes)
        if not self.is_spread:
            total, lost = _sum_in_blocks(terms, self.data, self.block, dtype)
            return total + lost

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
        return jnp.sum(totals) + jnp.sum(lost)


def _default_block(data: PyTree) -> int:
    """Rows whose terms fit a processor's cache, or keep an accelerator busy."""
    if jax.default_backend() == "cpu":
        return 4096
    return min(max(num_rows(data) // 64, 4096), 1 << 17)


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
    """The sum over rows and what it lost, in memory bounded by the block.

    Args:
        terms: One term per row of a block.
        data: Pytree of arrays with the rows as first axis.
        block: Rows per block.
        dtype: Of the sum.
    """
    rows = num_rows(data)
    block = min(block, rows)
    whole = rows // block * block

    @jax.checkpoint
    def block_sum(start: Array) -> Scalar:
        # Sliced where it is used: a reshaped copy would double the data.
        part = jax.tree_util.tree_map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, block), data
        )
        return _pairwise(terms(part))

    def add(carry: tuple[Array, Array], start: Array):
        return _compensated(*carry, block_sum(start)), None

    zero = jnp.zeros((), dtype)
    starts = jnp.arange(0, whole, block)
    (total, lost), _ = jax.lax.scan(add, (zero, zero), starts)
    if whole < rows:
        rest = jax.tree_util.tree_map(lambda leaf: leaf[whole:], data)
        total, lost = _compensated(total, lost, _pairwise(terms(rest)))
    return total, lost


def _pairwise(values: Float[Array, " n"]) -> Scalar:
    """A sum in halves: rounding grows with the logarithm of the number of terms."""
    while values.shape[0] > 1:
        half = values.shape[0] // 2
        left, right, odd = values[:half], values[half : 2 * half], values[2 * half :]
        values = jnp.concatenate([left + right, odd])
    return values[0]


def _compensated(total: Array, lost: Array, term: Array) -> tuple[Array, Array]:
    """Neumaier's sum: what a sum loses is kept beside it and added at the end."""
    new = total + term
    # The barrier keeps the compiler from cancelling what is zero in exact arithmetic.
    fixed, big, small = jax.lax.stop_gradient((new, total, term))
    fixed = jax.lax.optimization_barrier(fixed)
    left = jnp.where(jnp.abs(big) >= jnp.abs(small), big, small)
    right = jnp.where(jnp.abs(big) >= jnp.abs(small), small, big)
    return new, lost + ((left - fixed) + right)
