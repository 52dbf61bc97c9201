"""A normal with a low-rank plus diagonal covariance, for many parameters."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar
from paramax import Parameterize

from softcvi.guides._base import VectorGuide
from softcvi.guides._gaussian import HALF_LOG_TWO_PI
from softcvi.guides._parameters import (
    as_guide_structure,
    float_dtype,
    in_units,
    positive_in_units,
    positive_parameter,
)
from softcvi.guides._vector import AbstractVectorDistribution


class LowRankNormal(AbstractVectorDistribution):
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
    can_be_matched: ClassVar[bool] = True
    has_noise: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = 5e-3

    def __init__(
        self,
        loc: Float[ArrayLike, " d"],
        scale: Float[ArrayLike, " d"],
        factor: Float[ArrayLike, "d rank"],
    ):
        self.loc = jnp.asarray(loc)
        self.scale = positive_parameter(jnp.asarray(scale))
        self.factor = jnp.asarray(factor)
        self.shape = self.loc.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_noise(self._sample_noise(key))

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        (dim,), rank = self.shape, self.factor.shape[1]
        return jax.random.normal(key, (dim + rank,), self.loc.dtype)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Float[Array, " d"]:
        (dim,) = self.shape
        return self.loc + self.scale * noise[:dim] + self.factor @ noise[dim:]

    def _noise_owner(self) -> np.ndarray:
        return np.append(np.arange(*self.shape), np.full(self.factor.shape[1], -1))

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
        return -0.5 * quadratic - log_det - self.shape[0] * HALF_LOG_TWO_PI

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
        return placed_low_rank(mean, sd * jnp.sqrt(left), sd[:, None] * factor)


def placed_low_rank(
    mean: Float[Array, " d"], scale: Float[Array, " d"], factor: Float[Array, "d rank"]
) -> LowRankNormal:
    """A low-rank normal whose parameters are counted in its standard deviations."""
    sd = jnp.sqrt(scale**2 + jnp.sum(factor**2, axis=1))
    return eqx.tree_at(
        lambda normal: (normal.loc, normal.scale, normal.factor),
        LowRankNormal(mean, scale, factor),
        (
            in_units(mean, sd),
            positive_in_units(scale, sd),
            in_units(factor, sd[:, None]),
        ),
    )


def low_rank_at(
    target: PyTree,
    mean: Float[ArrayLike, " d"],
    scale: Float[ArrayLike, " d"],
    factor: Float[ArrayLike, "d rank"],
) -> VectorGuide:
    """A low-rank normal placed by its parts: no covariance matrix is ever made.

    Args:
        target: The target, or a pytree like one particle.
        mean: Mean vector.
        scale: Standard deviations of the diagonal part.
        factor: Matrix of shape ``(d, rank)``, for example from low-rank curvature.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> parts = jnp.zeros(9), jnp.ones(9), 0.5 * jnp.ones((9, 1))
        >>> guide = softcvi.guides.low_rank_at({"x": jnp.zeros(9)}, *parts)
        >>> guide.placed
        True
    """
    structure = as_guide_structure(target)
    dtype = float_dtype(structure)
    mean, scale, factor = (jnp.asarray(part, dtype) for part in (mean, scale, factor))
    size = structure.size
    if (mean.shape, scale.shape, factor.shape[:-1]) != ((size,),) * 3:
        raise ValueError(
            f"mean, scale, factor: need {size} rows; got shapes {mean.shape}, "
            f"{scale.shape} and {factor.shape}."
        )
    return VectorGuide(placed_low_rank(mean, scale, factor), structure, placed=True)


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
