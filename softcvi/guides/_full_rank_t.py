"""A Student's t with any covariance: a normal whose draws reach further out."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import VectorGuide, as_guide_structure, float_dtype
from softcvi.guides._gaussian import FullRankNormal
from softcvi.guides._whitened import Whitened


class FullRankStudentT(AbstractDistribution):
    """A multivariate Student's t with a fixed even number of degrees of freedom.

    Its tails bound the importance weights where those of a normal would not, which is
    what a guide is for that is to be corrected by them. A chi-square variable with an
    even number of degrees of freedom is a sum of exponential ones: no rejection loop.

    Args:
        loc: Centre.
        scale: Scale matrix, the covariance times ``(df - 2) / df``.
        df: Degrees of freedom, even and above two.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import FullRankStudentT
        >>> t = FullRankStudentT(jnp.zeros(2), jnp.eye(2))
        >>> round(float(t.log_prob(jnp.zeros(2))), 4)
        -1.8379
    """

    normal: FullRankNormal
    df: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = FullRankNormal.suggested_rate

    def __init__(
        self, loc: Float[Array, " d"], scale: Float[Array, "d d"], df: int = 8
    ):
        if df % 2 or df <= 2:
            raise ValueError(f"df: must be even and above two; got {df}.")
        self.normal = FullRankNormal(loc, scale)
        self.df = df
        self.shape = self.normal.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        normal_key, mixing_key = jax.random.split(key)
        dtype = self.normal.loc.dtype
        tiny = jnp.finfo(dtype).tiny
        u = jax.random.uniform(mixing_key, (self.df // 2,), dtype, tiny, 1.0)
        mixing = -2.0 * jnp.sum(jnp.log(u)) / self.df
        z = jax.random.normal(normal_key, self.shape, dtype)
        return self.from_base(z / jnp.sqrt(mixing))[0]

    def from_base(self, z: Float[Array, " d"]) -> tuple[Float[Array, " d"], Scalar]:
        """Map a point of the space where this is a standard t, with ``log |dx/dz|``."""
        return self.normal.from_base(z)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        df, dim = self.df, self.shape[0]
        z = self.normal._factor() @ (x - self.normal.loc)
        constant = math.lgamma((df + dim) / 2) - math.lgamma(df / 2)
        constant -= 0.5 * dim * math.log(df * math.pi)
        log_det = jnp.sum(jnp.log(self.normal.diagonal))
        return constant + log_det - 0.5 * (df + dim) * jnp.log1p(jnp.dot(z, z) / df)

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> Whitened:
        """A standard t of this family behind the affine map to these moments."""
        eye = jnp.eye(mean.size, dtype=mean.dtype)
        shrunk = (self.df - 2) / self.df
        standard = FullRankStudentT(jnp.zeros_like(mean), shrunk * eye, self.df)
        return Whitened(standard, mean, jnp.linalg.cholesky(covariance))


def full_rank_t(target: PyTree, *, df: int = 8, scale: float = 1.0) -> VectorGuide:
    """One Student's t with a full covariance over all scalars of a particle.

    Args:
        target: The target, or a pytree like one particle.
        df: Degrees of freedom, even and above two; they are not trained.
        scale: Starting standard deviation.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> softcvi.guides.full_rank_t({"x": jnp.zeros(3)}).distribution.shape
        (3,)
    """
    structure = as_guide_structure(target)
    dtype = float_dtype(structure)
    zeros = jnp.zeros(structure.size, dtype)
    matrix = scale**2 * (df - 2) / df * jnp.eye(structure.size, dtype=dtype)
    return VectorGuide(FullRankStudentT(zeros, matrix, df), structure)
