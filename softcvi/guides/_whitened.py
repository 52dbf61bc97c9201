"""A distribution moved and scaled by a fixed affine map found by the start of a fit."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flowjax.distributions import AbstractDistribution
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from paramax import NonTrainable

from softcvi.guides._base import VectorGuide
from softcvi.guides._vector import (
    AbstractVectorDistribution,
    as_vector_distribution,
)


class Whitened(AbstractVectorDistribution):
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
    has_matrix: ClassVar[bool] = True

    def __init__(
        self,
        base: AbstractDistribution,
        loc: Float[ArrayLike, " d"],
        factor: Float[ArrayLike, "d d"],
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

    @property
    def _family(self) -> AbstractVectorDistribution:
        return as_vector_distribution(self.base)

    @property
    def has_base(self) -> bool:  # type: ignore[override]
        """That of the base."""
        return self._family.has_base

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return self._family._sample_base(key)

    def _from_base(
        self, z: Float[Array, " d"], condition: Array | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        y, log_det = self._family._from_base(z, condition)
        return self.loc + self.factor @ y, log_det + self._log_det()

    @property
    def has_noise(self) -> bool:
        """That of the base."""
        return self._family.has_noise

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return self._family._sample_noise(key)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Float[Array, " d"]:
        return self.loc + self.factor @ self._family._from_noise(noise, condition)

    def _noise_owner(self) -> np.ndarray:
        return self._family._noise_owner()

    @property
    def can_be_matched(self) -> bool:  # type: ignore[override]
        """That of the base."""
        return self._family.can_be_matched

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> AbstractVectorDistribution | None:
        """The base's family at new moments."""
        return self._family.matched(mean, covariance)

    @property
    def covers_reals(self) -> bool:  # type: ignore[override]
        """That of the base."""
        return self._family.covers_reals

    @property
    def is_flow(self) -> bool:  # type: ignore[override]
        """That of the base."""
        return self._family.is_flow

    @property
    def suggested_rate(self) -> float:  # type: ignore[override]
        """What suits the base once it is placed: the affine map has done that."""
        return self._family.tuned_rate

    @property
    def tuned_rate(self) -> float:
        """That of the base."""
        return self._family.tuned_rate

    @property
    def suggested_clip(self) -> float:  # type: ignore[override]
        """That of the base."""
        return self._family.suggested_clip


def whitened(
    guide: VectorGuide, loc: Float[ArrayLike, " d"], factor: Float[ArrayLike, "d d"]
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
    distribution = Whitened(guide.distribution, loc, factor)
    return VectorGuide(distribution, guide.structure, placed=True)
