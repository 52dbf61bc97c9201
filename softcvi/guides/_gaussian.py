"""Normal guides: mean-field and full-rank."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar
from paramax import Parameterize

from softcvi.guides._base import VectorGuide
from softcvi.guides._parameters import (
    as_guide_structure,
    float_dtype,
    in_units,
    positive_in_units,
    positive_parameter,
)
from softcvi.guides._vector import AbstractVectorDistribution
from softcvi.guides._whitened import Whitened

HALF_LOG_TWO_PI = 0.9189385332046727


class DiagonalNormal(AbstractVectorDistribution):
    """Independent normals with trainable means and scales.

    Args:
        loc: Means.
        scale: Standard deviations.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import DiagonalNormal
        >>> float(DiagonalNormal(jnp.zeros(2), jnp.ones(2)).log_prob(jnp.zeros(2)))
        -1.8378770351409912
    """

    loc: Array | Parameterize
    scale: Array | Parameterize
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    can_be_matched: ClassVar[bool] = True
    has_base: ClassVar[bool] = True

    def __init__(self, loc: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]):
        loc, scale = jnp.broadcast_arrays(jnp.asarray(loc), jnp.asarray(scale))
        self.loc = loc
        self.scale = positive_parameter(scale)
        self.shape = loc.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self.loc + self.scale * self._sample_base(key)

    def _sample_base(self, key: PRNGKeyArray) -> Array:
        return jax.random.normal(key, self.shape, self.loc.dtype)

    def _from_base(
        self, z: Array, condition: Array | None = None
    ) -> tuple[Array, Scalar]:
        return self.loc + self.scale * z, jnp.sum(jnp.log(self.scale))

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = jnp.ravel((x - self.loc) / self.scale)
        # A dot product is one operation where a sum of squares is several.
        log_det = jnp.sum(jnp.log(self.scale)) + z.size * HALF_LOG_TWO_PI
        return -0.5 * jnp.dot(z, z) - log_det

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "DiagonalNormal":
        """The normal with these marginals: the optimum of the forward KL.

        Its parameters are counted in the standard deviations found.
        """
        sd = jnp.sqrt(jnp.diagonal(covariance))
        return eqx.tree_at(
            lambda normal: (normal.loc, normal.scale),
            DiagonalNormal(mean, sd),
            (in_units(mean, sd), positive_in_units(sd, sd)),
        )


class FullRankNormal(AbstractVectorDistribution):
    """A normal with any covariance, by the Cholesky-like factor of its precision.

    Parameterised by ``z = A (x - loc)`` with ``A`` lower triangular, so that the log
    density, which is what SoftCVI differentiates, needs a product and no solve.

    Args:
        loc: Mean vector.
        covariance: Covariance matrix.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import FullRankNormal
        >>> float(FullRankNormal(jnp.zeros(2), jnp.eye(2)).log_prob(jnp.zeros(2)))
        -1.8378770351409912
    """

    loc: Array
    diagonal: Array | Parameterize
    lower: Array
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    can_be_matched: ClassVar[bool] = True
    has_base: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = 5e-3

    def __init__(
        self, loc: Float[ArrayLike, " d"], covariance: Float[ArrayLike, "d d"]
    ):
        loc = jnp.asarray(loc)
        factor = inverse_factor(jnp.asarray(covariance, loc.dtype))
        self.loc = loc
        self.diagonal = positive_parameter(jnp.diagonal(factor))
        # Stored relative to the diagonal, so that one learning rate fits all entries.
        self.lower = jnp.tril(factor / jnp.diagonal(factor)[:, None], -1)
        self.shape = loc.shape

    def _factor(self) -> Float[Array, "d d"]:
        unit = jnp.tril(self.lower, -1) + jnp.eye(self.shape[0], dtype=self.loc.dtype)
        return self.diagonal[:, None] * unit

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_base(self._sample_base(key))[0]

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return jax.random.normal(key, self.shape, self.loc.dtype)

    def _from_base(
        self, z: Float[Array, " d"], condition: Array | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        shift = jax.scipy.linalg.solve_triangular(self._factor(), z, lower=True)
        return self.loc + shift, -jnp.sum(jnp.log(self.diagonal))

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = self._factor() @ (x - self.loc)
        log_det = z.size * HALF_LOG_TWO_PI - jnp.sum(jnp.log(self.diagonal))
        return -0.5 * jnp.dot(z, z) - log_det

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> Whitened:
        """A standard normal of this family behind the affine map to these moments."""
        standard = FullRankNormal(
            jnp.zeros_like(mean), jnp.eye(mean.size, dtype=mean.dtype)
        )
        return Whitened(standard, mean, jnp.linalg.cholesky(covariance))


def inverse_factor(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Lower triangular ``A`` with ``A cov A' = I``."""
    chol = jnp.linalg.cholesky(covariance)
    eye = jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    return jax.scipy.linalg.solve_triangular(chol, eye, lower=True)


def mean_field(target: PyTree, *, scale: float = 1.0) -> VectorGuide:
    """Independent normals over all scalars of a particle, starting at N(0, scale).

    Args:
        target: The target, or a pytree like one particle.
        scale: Starting standard deviation.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> softcvi.guides.mean_field({"x": jnp.zeros(3)}).distribution.shape
        (3,)
    """
    structure = as_guide_structure(target)
    zeros = jnp.zeros(structure.size, float_dtype(structure))
    return VectorGuide(DiagonalNormal(zeros, zeros + scale), structure)


def full_rank(target: PyTree, *, scale: float = 1.0) -> VectorGuide:
    """One normal with a full covariance over all scalars of a particle.

    Args:
        target: The target, or a pytree like one particle.
        scale: Starting standard deviation.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> softcvi.guides.full_rank({"x": jnp.zeros(3)}).distribution.lower.shape
        (3, 3)
    """
    structure = as_guide_structure(target)
    dtype = float_dtype(structure)
    zeros = jnp.zeros(structure.size, dtype)
    covariance = scale**2 * jnp.eye(structure.size, dtype=dtype)
    return VectorGuide(FullRankNormal(zeros, covariance), structure)
