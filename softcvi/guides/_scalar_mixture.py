"""Independent mixtures of normals: several modes in each scalar on its own."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar
from paramax import Parameterize

from softcvi.guides._base import VectorGuide
from softcvi.guides._gaussian import HALF_LOG_TWO_PI
from softcvi.guides._parameters import (
    as_guide_structure,
    float_dtype,
    positive_parameter,
)
from softcvi.guides._vector import AbstractVectorDistribution


class ScalarMixtures(AbstractVectorDistribution):
    """A mixture of normals for each scalar, independent of those of the others.

    With ``m`` components and ``d`` scalars it has ``m^d`` modes, which no mixture of
    whole particles can hold.

    Args:
        loc: Means, one row per scalar.
        scale: Standard deviations.
        logits: Log weights; equal by default.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import ScalarMixtures
        >>> wells = ScalarMixtures(jnp.array([[-2.0, 2.0]]), jnp.full((1, 2), 0.1))
        >>> round(float(wells.log_prob(jnp.array([2.0]))), 4)
        0.6905
    """

    loc: Float[Array, "d m"]
    scale: Array | Parameterize
    logits: Float[Array, "d m"]
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    has_noise: ClassVar[bool] = True

    def __init__(
        self,
        loc: Float[Array, "d m"],
        scale: Float[Array, "d m"],
        logits: Float[Array, "d m"] | None = None,
    ):
        self.loc = jnp.asarray(loc)
        self.scale = positive_parameter(jnp.asarray(scale))
        self.logits = jnp.zeros_like(self.loc) if logits is None else logits
        self.shape = self.loc.shape[:1]

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_noise(self._sample_noise(key))

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        """A uniform number and a normal one for each scalar, side by side."""
        pick_key, normal_key = jax.random.split(key)
        dtype = self.loc.dtype
        u = jax.random.uniform(pick_key, self.shape, dtype)
        z = jax.random.normal(normal_key, self.shape, dtype)
        return jnp.stack([u, z], axis=-1).reshape(-1)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Float[Array, " d"]:
        u, z = jnp.moveaxis(noise.reshape(-1, 2), 1, 0)
        edges = jnp.cumsum(jax.nn.softmax(self.logits), axis=-1)[:, :-1]
        pick = jnp.sum(u[:, None] >= edges, axis=-1)
        chosen = jax.nn.one_hot(pick, self.loc.shape[1], dtype=self.loc.dtype)
        return jnp.sum(chosen * (self.loc + self.scale * z[:, None]), axis=-1)

    def _noise_owner(self) -> np.ndarray:
        return np.repeat(np.arange(*self.shape), 2)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = (x[:, None] - self.loc) / self.scale
        parts = -0.5 * z**2 - jnp.log(self.scale) - HALF_LOG_TWO_PI
        return jnp.sum(jax.nn.logsumexp(parts + jax.nn.log_softmax(self.logits), -1))


def scalar_mixtures(
    target: PyTree, *, components: int = 4, scale: float = 1.0
) -> VectorGuide:
    """A mixture of normals for each scalar of a particle, for many modes at once.

    Args:
        target: The target, or a pytree like one particle.
        components: Normals per scalar.
        scale: Starting standard deviation of each mixture as a whole, about.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> guide = softcvi.guides.scalar_mixtures({"x": jnp.zeros(3)}, components=2)
        >>> guide.distribution.loc.shape
        (3, 2)
    """
    if components < 2:
        raise ValueError(f"components: must be at least 2; got {components}.")
    structure = as_guide_structure(target)
    dtype = float_dtype(structure)
    # At even steps of probability, each about as wide as the steps between them.
    places = ndtri((jnp.arange(components, dtype=dtype) + 0.5) / components)
    loc = jnp.broadcast_to(scale * places, (structure.size, components))
    width = jnp.full_like(loc, 1.5 * scale / components)
    return VectorGuide(ScalarMixtures(loc, width), structure)
