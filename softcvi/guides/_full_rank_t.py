"""A Student's t with any covariance: a normal with heavier tails."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import VectorGuide
from softcvi.guides._gaussian import FullRankNormal
from softcvi.guides._parameters import as_guide_structure, float_dtype
from softcvi.guides._uniform import open_uniform
from softcvi.guides._vector import AbstractVectorDistribution
from softcvi.guides._whitened import Whitened


class FullRankStudentT(AbstractVectorDistribution):
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
    can_be_matched: ClassVar[bool] = True
    has_base: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = FullRankNormal.suggested_rate

    def __init__(
        self, loc: Float[ArrayLike, " d"], scale: Float[ArrayLike, "d d"], df: int = 8
    ):
        if df % 2 or df <= 2:
            raise ValueError(f"df: must be even and above two; got {df}.")
        self.normal = FullRankNormal(loc, scale)
        self.df = df
        self.shape = self.normal.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_noise(self._sample_noise(key))

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        """Standard normals, then the exponentials that make the chi-square."""
        normal_key, mixing_key = jax.random.split(key)
        dtype = self.normal.loc.dtype
        u = open_uniform(mixing_key, (self.df // 2,), dtype)
        # Far draws have a small chi-square: the end of u that is fine belongs there.
        exponential = -jnp.log1p(-jnp.minimum(u, 1.0 - jnp.finfo(dtype).epsneg))
        z = jax.random.normal(normal_key, self.shape, dtype)
        return jnp.concatenate([z, exponential])

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Float[Array, " d"]:
        return self._from_base(self._standard(noise))[0]

    def _standard(self, noise: Float[Array, " noise"]) -> Float[Array, " d"]:
        z, exponential = jnp.split(noise, self.shape)
        return z / jnp.sqrt(2.0 * jnp.sum(exponential) / self.df)

    def _noise_owner(self) -> np.ndarray:
        return np.append(np.arange(*self.shape), np.full(self.df // 2, -1))

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return self._standard(self._sample_noise(key))

    def _from_base(
        self, z: Float[Array, " d"], condition: Array | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        return self.normal._from_base(z)

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
