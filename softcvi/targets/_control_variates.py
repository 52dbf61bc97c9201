"""Mini-batches with little bias: they estimate the remainder of a parabola only."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.targets._amortised import checked_batch_size, draw_rows
from softcvi.targets._base import AbstractTarget, AbstractWrapper
from softcvi.targets._row_sums import RowsInMemory
from softcvi.targets._rows import DataTarget


class ControlVariateTarget(AbstractWrapper):
    r"""A posterior of many rows, of which each step reads a few.

    The log likelihood of a row is its parabola at a centre plus a remainder. The sum of
    all parabolas is one parabola, known exactly from one pass over the data; only the
    sum of the remainders is estimated from a mini-batch. A remainder is of third order
    in the distance to the centre, so that the errors of labels vanish as the rows grow
    in number, where those of plain mini-batches grow. Without a mini-batch, as in
    weights and chains of the verdict, all rows are used.

    Args:
        target: The posterior given all rows, which must be in memory.
        centre: One particle in the *fitting* space near the mode, or its vector, as
            ``softcvi.starts.Explore().find(key, target).modes[0].mean``.
        batch_size: Rows per step.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.targets.DataTarget(
        ...     lambda t: -0.5 * t**2, lambda t, x: -0.5 * (x - t) ** 2,
        ...     like=jnp.zeros(()), data=jnp.arange(10.0), reference=jnp.zeros(()),
        ... )
        >>> few = softcvi.targets.ControlVariateTarget(target, jnp.ones(()), 2)
        >>> rows = few.draw_data(jax.random.key(0))  # the parabola is all there is
        >>> float(few.log_density(jnp.ones(()), rows)), float(target.log_density(1.0))
        (39.5, 39.5)
    """

    target: DataTarget
    centre: Float[Array, " d"]
    height: Scalar
    slope: Float[Array, " d"]
    bend: Float[Array, "d d"]
    batch_size: int = eqx.field(static=True)

    def __init__(self, target: DataTarget, centre: PyTree, batch_size: int):
        if not isinstance(target, DataTarget) or not isinstance(
            target.rows, RowsInMemory
        ):
            raise TypeError(
                "target: must be a DataTarget whose rows are arrays in memory, so that "
                f"single ones can be drawn; got {type(target).__name__}."
            )
        self.target = target
        self.batch_size = checked_batch_size(batch_size, target.rows.data)
        is_vector = getattr(centre, "shape", None) == (target.structure.size,)
        vector = centre if is_vector else target.structure.ravel(centre)
        self.centre = jnp.asarray(vector, jnp.result_type(*target.structure.dtypes))
        self.height, self.slope, self.bend = _derivatives(target, self.centre)

    @property
    def particles_at_once(self) -> int | None:
        return self.target.particles_at_once

    def thinned(self) -> tuple[AbstractTarget, float] | None:
        return self.target.thinned()

    def draw_data(self, key: PRNGKeyArray) -> PyTree:
        return draw_rows(key, self.target.rows.data, self.batch_size)

    def log_density(self, particle: PyTree, data: Any = None) -> Scalar:
        if data is None:
            return self.target.log_density(particle)
        vector = self.structure.ravel(particle)
        step = vector - self.centre
        parabola = self.height + self.slope @ step + 0.5 * step @ self.bend @ step

        def of_rows(vector: Float[Array, " d"]) -> Float[Array, " rows"]:
            x = self.space.to_model(self.structure.unravel(vector))
            return self.target.of_rows(x, data)

        def slopes(vector: Float[Array, " d"]) -> tuple[Array, Array]:
            return jax.jvp(of_rows, (vector,), (step,))

        (height, slope), (_, bend) = jax.jvp(slopes, (self.centre,), (step,))
        remainder = of_rows(vector) - height - slope - 0.5 * bend
        scale = self.target.num_rows / self.batch_size
        rest = self.target.log_prior_and_jacobian(particle)
        return rest + parabola + scale * jnp.sum(remainder)


@eqx.filter_jit
def _derivatives(
    target: DataTarget, centre: Float[Array, " d"]
) -> tuple[Scalar, Array, Array]:
    """Log likelihood of all rows at a point, with its first two derivatives."""

    def likelihood(vector: Float[Array, " d"]) -> Scalar:
        particle = target.structure.unravel(vector)
        rest = target.log_prior_and_jacobian(particle)
        return target.log_density(particle) - rest

    height, slope = jax.value_and_grad(likelihood)(centre)
    return height, slope, jax.hessian(likelihood)(centre)
