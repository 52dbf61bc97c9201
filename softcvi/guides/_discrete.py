"""Discrete distributions for sites of a SiteGuide."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, Scalar


class Categorical(AbstractDistribution):
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

    def __init__(self, logits: Float[Array, "... categories"]):
        self.logits = jnp.asarray(logits)
        self.shape = self.logits.shape[:-1]

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return jax.random.categorical(key, self.logits).astype(jnp.int32)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        table = jax.nn.log_softmax(self.logits)
        chosen = jax.nn.one_hot(x.astype(jnp.int32), table.shape[-1], dtype=table.dtype)
        return jnp.sum(table * chosen)


class Bernoulli(AbstractDistribution):
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

    def __init__(self, logits: Float[Array, "..."]):
        self.logits = jnp.asarray(logits)
        self.shape = self.logits.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        u = jax.random.uniform(key, self.shape, self.logits.dtype)
        return (u < jax.nn.sigmoid(self.logits)).astype(jnp.int32)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        sign = 2 * x.astype(self.logits.dtype) - 1
        return jnp.sum(jax.nn.log_sigmoid(sign * self.logits))
