"""A distribution moved and scaled by a fixed affine map found by the start of a fit."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax import NonTrainable

from softcvi.guides._base import VectorGuide


class Whitened(AbstractDistribution):
    """``x = loc + factor y`` with ``y`` from a trainable base and a fixed affine map.

    An affine change of coordinates adds the same constant to every logit, so the
    labels and the optimum of SoftCVI are untouched: whitening is free.

    Args:
        base: Distribution of ``y``.
        loc: Shift.
        factor: Lower triangular matrix with positive diagonal.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import DiagonalNormal, Whitened
        >>> base = DiagonalNormal(jnp.zeros(2), jnp.ones(2))
        >>> moved = Whitened(base, jnp.ones(2), 2.0 * jnp.eye(2))
        >>> round(float(moved.log_prob(jnp.ones(2))), 4)
        -3.2242
    """

    base: AbstractDistribution
    loc: Array | NonTrainable
    factor: Array | NonTrainable
    inverse: Array | NonTrainable
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None

    def __init__(
        self,
        base: AbstractDistribution,
        loc: Float[Array, " d"],
        factor: Float[Array, "d d"],
    ):
        factor = jnp.asarray(factor)
        eye = jnp.eye(factor.shape[0], dtype=factor.dtype)
        inverse = jax.scipy.linalg.solve_triangular(factor, eye, lower=True)
        self.base = base
        self.loc = NonTrainable(jnp.asarray(loc))
        self.factor = NonTrainable(factor)
        self.inverse = NonTrainable(inverse)
        self.shape = base.shape

    def _log_det(self) -> Scalar:
        return jnp.sum(jnp.log(jnp.diagonal(self.factor)))

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self.loc + self.factor @ self.base._sample(key, condition)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        y = self.inverse @ (x - self.loc)
        return self.base._log_prob(y, condition) - self._log_det()

    def _sample_and_log_prob(self, key: PRNGKeyArray, condition: Array | None = None):
        y, log_prob = self.base._sample_and_log_prob(key, condition)
        return self.loc + self.factor @ y, log_prob - self._log_det()

    def from_base(self, z: Float[Array, " d"]) -> tuple[Float[Array, " d"], Scalar]:
        """Map a point of the base space to this one, with ``log |dx/dz|``."""
        y, log_det = self.base.from_base(z)
        return self.loc + self.factor @ y, log_det + self._log_det()

    @property
    def covers_reals(self) -> bool:
        """That of the base."""
        return getattr(self.base, "covers_reals", False)

    @property
    def suggested_rate(self) -> float:
        """That of the base."""
        return getattr(self.base, "suggested_rate", 1e-2)


def whitened(
    guide: VectorGuide, loc: Float[Array, " d"], factor: Float[Array, "d d"]
) -> VectorGuide:
    """Put a vector guide behind a fixed affine map.

    Args:
        guide: Guide of the whitened space.
        loc: Shift.
        factor: Lower triangular matrix with positive diagonal, for example the
            Cholesky factor of a covariance.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> guide = softcvi.guides.mean_field(jnp.zeros(2))
        >>> softcvi.guides.whitened(guide, jnp.ones(2), jnp.eye(2)).distribution.shape
        (2,)
    """
    return VectorGuide(Whitened(guide.distribution, loc, factor), guide.structure)
