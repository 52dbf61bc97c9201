"""A likelihood that is a sum over rows, in bounded memory and with little rounding."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.targets._amortised import num_rows
from softcvi.targets._base import AbstractTarget, as_log_density
from softcvi.targets._row_sums import AbstractRows, RowsInMemory, RowsOnDevices
from softcvi.targets._source import AbstractRowSource, StreamedRows
from softcvi.targets._space import AbstractSpace, ModelSpace
from softcvi.targets._structure import Structure, as_structure

# Terms of all particles and the rows of a block: 8 MB of them in single precision on a
# processor, where more at once are no quicker, and 128 MB on an accelerator, unless
# that is more than a few for each row: memory should be that of the data.
_TERMS_AT_ONCE = {"cpu": 1 << 21}
_TERMS_ON_ACCELERATORS = 1 << 25
_TERMS_PER_ROW = 4
# A block of rows from files; two of them are in memory at a time.
_SOURCE_BYTES = 1 << 28
# Rows to search for places with first: this many, and for each parameter; where there
# are several times as many.
_THINNED_ROWS = 4096
_THINNED_PER_PARAMETER = 64
_WORTH_THINNING = 8


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
        data: Pytree of arrays with the rows as first axis; or a source that reads them
            from files in blocks, such as ``NpyRows``, for data that do not fit into
            memory.
        reference: A particle in model coordinates near the posterior, for example a
            mode; without it the sums are compensated, but of the values themselves.
        block: Rows per block; by default as many as suit the device.
        devices: Devices to spread the rows over, such as ``jax.local_devices()``: each
            sums its own rows. By default the data stay where they are.
        memory: With a source: bytes in which blocks may be kept that would have to be
            read again for every evaluation.
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
    rows: AbstractRows
    reference: PyTree
    repeats: Float[Array, ""] | float
    space: AbstractSpace
    structure: Structure = eqx.field(static=True)
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
        memory: int = 1 << 30,
        space: AbstractSpace | None = None,
    ):
        self.log_prior = log_prior
        self.log_likelihood = log_likelihood
        self.rows = _as_rows(data, block, devices, memory)
        self.reference = reference
        self.repeats = 1.0
        self.space = ModelSpace() if space is None else space
        self.structure = as_structure(like)
        self.has_gradient = self.structure.is_continuous

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        x = self.space.to_model(particle)

        def terms(rows: PyTree) -> Float[Array, " rows"]:
            values = self.of_rows(x, rows)
            if self.reference is None:
                return values
            return values - self.of_rows(self.reference, rows)

        rest = self.log_prior_and_jacobian(particle)
        return rest + self.repeats * self._sum(terms)

    def log_prior_and_jacobian(self, particle: PyTree) -> Scalar:
        """The part of the log density that has no rows in it."""
        x, log_det = self.space.to_model_and_log_det(particle)
        return as_log_density(self.log_prior(x), "log_prior") + log_det

    @property
    def num_rows(self) -> int:
        """How many rows the data set has."""
        return self.rows.num_rows

    @property
    def particles_at_once(self) -> int:
        return particles_at_once(self.rows)

    def thinned(self) -> "tuple[DataTarget, float] | None":
        count = num_thinned(self.rows, self.structure.size)
        if count is None:
            return None
        rows = RowsInMemory(self.rows.sample(count), min(self.rows.block, count))
        repeats = self.num_rows / count
        parts = (rows, jnp.asarray(repeats, self._dtype))
        return eqx.tree_at(lambda t: (t.rows, t.repeats), self, parts), repeats

    def log_density_at_reference(self) -> Scalar:
        """Log likelihood of all rows at the reference point; zero without one."""
        if self.reference is None:
            return jnp.zeros(())
        return self._sum(lambda rows: self.of_rows(self.reference, rows))

    @property
    def _dtype(self) -> Any:
        return jnp.result_type(*self.structure.dtypes)

    def of_rows(self, x: PyTree, rows: PyTree) -> Float[Array, " rows"]:
        """Log likelihood of each of some rows, for one particle of the model."""
        values = self.log_likelihood(x, rows)
        count = num_rows(rows)
        if jnp.shape(values) != (count,):
            raise ValueError(
                f"log_likelihood: must return one value per row, shape ({count},); it "
                f"has shape {jnp.shape(values)}. Do not sum over rows."
            )
        return as_log_density(values, "log_likelihood")

    def _sum(self, terms: Callable[[PyTree], Array]) -> Scalar:
        total, lost = self.rows.total(terms, self._dtype)
        return total + lost


def _as_rows(
    data: PyTree,
    block: int | None,
    devices: Sequence[jax.Device] | None,
    memory: int,
) -> AbstractRows:
    block = default_block(data) if block is None else block
    if isinstance(block, bool) or not isinstance(block, int) or block < 1:
        raise ValueError(f"block: must be an integer of at least 1; got {block!r}.")
    if isinstance(data, AbstractRowSource):
        if devices is not None:
            raise ValueError("devices: rows of a source are read to one device.")
        return StreamedRows(data, block, memory)
    rows = {leaf.shape[0] for leaf in jax.tree_util.tree_leaves(data)}
    if len(rows) != 1:
        raise ValueError(
            f"data: all arrays need one leading axis of equal length; got {rows}."
        )
    if devices is None:
        return RowsInMemory(data, block)
    return RowsOnDevices(data, block, devices)


def particles_at_once(rows: AbstractRows) -> int:
    """How many particles can be evaluated together on each block.

    Args:
        rows: The rows.
    """
    most = min(_TERMS_ON_ACCELERATORS, _TERMS_PER_ROW * rows.num_rows)
    terms = _TERMS_AT_ONCE.get(jax.default_backend(), most)
    return max(1, terms // rows.block)


def num_thinned(rows: AbstractRows, size: int) -> int | None:
    """How many rows a search is made with first; None where that saves little.

    Args:
        rows: All rows.
        size: Number of parameters.
    """
    count = max(_THINNED_ROWS, _THINNED_PER_PARAMETER * size)
    return count if rows.num_rows >= _WORTH_THINNING * count else None


def default_block(data: PyTree) -> int:
    """Rows whose terms fit a processor's cache, or keep an accelerator busy.

    Each block takes a dozen launches of some microseconds, in which an accelerator
    could read a hundred thousand rows.
    """
    if isinstance(data, AbstractRowSource):
        row = jax.tree_util.tree_leaves(data.row)
        size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in row)
        return max(1, min(1 << 15, _SOURCE_BYTES // max(size, 1)))
    if jax.default_backend() == "cpu":
        return 4096
    return min(max(num_rows(data) // 64, 4096), 1 << 20)
