"""Discrete distributions for sites of a SiteGuide."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, Scalar, Shaped

from softcvi.guides._vector import AbstractVectorDistribution


class Categorical(AbstractVectorDistribution):
    """Independent categorical variables with trainable logits.

    Args:
        logits: Array of shape ``(..., categories)``; draws have shape ``(...)``.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import Categorical
        >>> round(float(Categorical(jnp.zeros((3, 2))).log_prob(jnp.zeros(3))), 4)
        -2.0794
    """

    logits: Float[Array, "... categories"]
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    has_noise: ClassVar[bool] = True

    def __init__(self, logits: Float[ArrayLike, "... categories"]):
        self.logits = jnp.asarray(logits)
        self.shape = self.logits.shape[:-1]

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return jax.random.categorical(key, self.logits).astype(jnp.int32)

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return jax.random.gumbel(key, (self.logits.size,), self.logits.dtype)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Array:
        return categorical_from_noise(self.logits, noise)

    def _noise_owner(self) -> np.ndarray:
        return categorical_noise_owner(self.logits.shape)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        return categorical_log_prob(self.logits, x)


class Bernoulli(AbstractVectorDistribution):
    """Independent coin flips with trainable logits, drawn as 0 and 1.

    Args:
        logits: Array of log odds; draws have its shape.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.guides import Bernoulli
        >>> round(float(Bernoulli(jnp.zeros(2)).log_prob(jnp.ones(2))), 4)
        -1.3863
    """

    logits: Float[Array, "..."]
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    has_noise: ClassVar[bool] = True

    def __init__(self, logits: Float[ArrayLike, "..."]):
        self.logits = jnp.asarray(logits)
        self.shape = self.logits.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_noise(self._sample_noise(key))

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return jax.random.uniform(key, (self.logits.size,), self.logits.dtype)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Array:
        u = noise.reshape(self.shape)
        return (u < jax.nn.sigmoid(self.logits)).astype(jnp.int32)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        sign = 2 * x.astype(self.logits.dtype) - 1
        total = jnp.sum(jax.nn.log_sigmoid(sign * self.logits))
        return jnp.where(jnp.all((x == 0) | (x == 1)), total, -jnp.inf)


def categorical_log_prob(
    logits: Float[Array, "... values"], x: Shaped[Array, "..."]
) -> Scalar:
    """Log probability of independent values; minus infinity outside 0 to n - 1."""
    table = jax.nn.log_softmax(logits)
    values = table.shape[-1]
    chosen = jax.nn.one_hot(x.astype(jnp.int32), values, dtype=table.dtype)
    inside = jnp.all((x >= 0) & (x < values) & (x == jnp.floor(x)))
    # A value outside the support has no row of its own and no probability.
    return jnp.where(inside, jnp.sum(table * chosen), -jnp.inf)


def categorical_from_noise(
    logits: Float[Array, "... values"], noise: Float[Array, " noise"]
) -> Array:
    """Values with these probabilities from independent Gumbel noise."""
    scores = logits + noise.reshape(logits.shape)
    return jnp.argmax(scores, axis=-1).astype(jnp.int32)


def categorical_noise_owner(shape: tuple[int, ...]) -> np.ndarray:
    """The scalar that each Gumbel variable of a table of this shape decides."""
    return np.repeat(np.arange(int(np.prod(shape[:-1], dtype=int))), shape[-1])
