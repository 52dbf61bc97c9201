"""Normal guides: mean-field, full-rank and low-rank plus diagonal."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar
from paramax import Parameterize

from softcvi.guides._base import VectorGuide, as_guide_structure, float_dtype
from softcvi.guides._parameters import in_units, positive_in_units, positive_parameter
from softcvi.guides._whitened import Whitened

_HALF_LOG_TWO_PI = 0.9189385332046727


class DiagonalNormal(AbstractDistribution):
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

    def __init__(self, loc: Float[Array, "..."], scale: Float[Array, "..."]):
        loc, scale = jnp.broadcast_arrays(jnp.asarray(loc), jnp.asarray(scale))
        self.loc = loc
        self.scale = positive_parameter(scale)
        self.shape = loc.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        noise = jax.random.normal(key, self.shape, self.loc.dtype)
        return self.loc + self.scale * noise

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = jnp.ravel((x - self.loc) / self.scale)
        # A dot product is one operation where a sum of squares is several.
        log_det = jnp.sum(jnp.log(self.scale)) + z.size * _HALF_LOG_TWO_PI
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


class FullRankNormal(AbstractDistribution):
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
    suggested_rate: ClassVar[float] = 5e-3

    def __init__(self, loc: Float[Array, " d"], covariance: Float[Array, "d d"]):
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
        return self.from_base(jax.random.normal(key, self.shape, self.loc.dtype))[0]

    def from_base(self, z: Float[Array, " d"]) -> tuple[Float[Array, " d"], Scalar]:
        """Map a standard normal point to this distribution, with ``log |dx/dz|``."""
        shift = jax.scipy.linalg.solve_triangular(self._factor(), z, lower=True)
        return self.loc + shift, -jnp.sum(jnp.log(self.diagonal))

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = self._factor() @ (x - self.loc)
        log_det = z.size * _HALF_LOG_TWO_PI - jnp.sum(jnp.log(self.diagonal))
        return -0.5 * jnp.dot(z, z) - log_det

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> Whitened:
        """A standard normal of this family behind the affine map to these moments."""
        standard = FullRankNormal(
            jnp.zeros_like(mean), jnp.eye(mean.size, dtype=mean.dtype)
        )
        return Whitened(standard, mean, jnp.linalg.cholesky(covariance))


class LowRankNormal(AbstractDistribution):
    """A normal with covariance ``diag(scale^2) + factor factor'``.

    Args:
        loc: Mean vector.
        scale: Standard deviations of the diagonal part.
        factor: Matrix of shape ``(d, rank)``.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import LowRankNormal
        >>> normal = LowRankNormal(jnp.zeros(3), jnp.ones(3), jnp.zeros((3, 1)))
        >>> round(float(normal.log_prob(jnp.zeros(3))), 4)
        -2.7568
    """

    loc: Array | Parameterize
    scale: Array | Parameterize
    factor: Array | Parameterize
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = 5e-3

    def __init__(
        self,
        loc: Float[Array, " d"],
        scale: Float[Array, " d"],
        factor: Float[Array, "d rank"],
    ):
        self.loc = jnp.asarray(loc)
        self.scale = positive_parameter(jnp.asarray(scale))
        self.factor = jnp.asarray(factor)
        self.shape = self.loc.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        (dim,), rank = self.shape, self.factor.shape[1]
        noise = jax.random.normal(key, (dim + rank,), self.loc.dtype)
        return self.loc + self.scale * noise[:dim] + self.factor @ noise[dim:]

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        # Woodbury: only a rank x rank system is ever solved.
        scaled = self.factor / self.scale[:, None]
        residual = (x - self.loc) / self.scale
        capacitance = scaled.T @ scaled + jnp.eye(scaled.shape[1], dtype=x.dtype)
        chol = jnp.linalg.cholesky(capacitance)
        projected = jax.scipy.linalg.solve_triangular(
            chol, scaled.T @ residual, lower=True
        )
        log_det = jnp.sum(jnp.log(self.scale)) + jnp.sum(jnp.log(jnp.diagonal(chol)))
        quadratic = jnp.sum(residual**2) - jnp.sum(projected**2)
        return -0.5 * quadratic - log_det - self.shape[0] * _HALF_LOG_TWO_PI

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "LowRankNormal":
        """Leading directions of the correlation go to the factor, the rest stays.

        Its parameters are counted in the standard deviations found.
        """
        sd = jnp.sqrt(jnp.diagonal(covariance))
        rank = self.factor.shape[1]
        values, vectors = jnp.linalg.eigh(covariance / jnp.outer(sd, sd))
        top = jnp.sqrt(jnp.clip(values[-rank:] - 1.0, 0.0, None))
        factor = vectors[:, -rank:] * top
        left = jnp.clip(1.0 - jnp.sum(factor**2, axis=1), 0.05, None)
        scale = sd * jnp.sqrt(left)
        return eqx.tree_at(
            lambda normal: (normal.loc, normal.scale, normal.factor),
            LowRankNormal(mean, scale, factor),
            (
                in_units(mean, sd),
                positive_in_units(scale, sd),
                in_units(sd[:, None] * factor, sd[:, None]),
            ),
        )


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


def low_rank(
    target: PyTree, *, rank: int | None = None, scale: float = 1.0
) -> VectorGuide:
    """A normal with a low-rank plus diagonal covariance, for many parameters.

    Args:
        target: The target, or a pytree like one particle.
        rank: Columns of the factor; by default ``ceil(sqrt(d))``, at most 30.
        scale: Starting standard deviation of the diagonal.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> softcvi.guides.low_rank({"x": jnp.zeros(9)}).distribution.factor.shape
        (9, 3)
    """
    structure = as_guide_structure(target)
    size, dtype = structure.size, float_dtype(structure)
    rank = min(30, int(jnp.ceil(jnp.sqrt(size)))) if rank is None else rank
    if not 1 <= rank <= size:
        raise ValueError(
            f"rank: must lie between 1 and the {size} scalars of a particle; got "
            f"{rank}."
        )
    zeros = jnp.zeros(size, dtype)
    # Not zero: the gradient of the factor vanishes at zero.
    factor = 0.1 * scale * jax.random.normal(jax.random.key(0), (size, rank), dtype)
    return VectorGuide(LowRankNormal(zeros, zeros + scale, factor), structure)
