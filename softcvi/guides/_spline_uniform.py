"""Flexible distributions on an interval: a uniform through a spline."""

import math
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from softcvi.guides._spline import (
    num_spline_parameters,
    spline_forward,
    spline_inverse,
)
from softcvi.guides._vector import AbstractVectorDistribution


class SplineUniform(AbstractVectorDistribution):
    """A scalar on (low, high): a uniform through the inverse of a trainable spline.

    Args:
        low: Lower bound.
        high: Upper bound.
        knots: Inner knots of the spline.
        network: Optional callable pytree from a condition to an offset of the spline
            parameters, for a conditional distribution.
        cond_shape: Shape of the condition, if there is a network.

    Example:
        >>> from softcvi.guides import SplineUniform
        >>> round(float(SplineUniform(0.0, 2.0).log_prob(0.5)), 4)
        -0.6931
    """

    raw: Float[Array, " p"]
    network: Callable | None
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: tuple[int, ...] | None = eqx.field(static=True)
    has_noise: ClassVar[bool] = True

    def __init__(
        self,
        low: float = 0.0,
        high: float = 1.0,
        *,
        knots: int = 10,
        network: Callable | None = None,
        cond_shape: tuple[int, ...] | None = None,
    ):
        if (network is None) != (cond_shape is None):
            raise ValueError("network, cond_shape: give both or neither.")
        self.raw = jnp.zeros(num_spline_parameters(knots))
        self.network = network
        self.low, self.high = float(low), float(high)
        self.shape = ()
        self.cond_shape = cond_shape

    def _raw(self, condition: Array | None) -> Float[Array, " p"]:
        if self.network is None:
            return self.raw
        return self.raw + self.network(condition)

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self._from_noise(self._sample_noise(key), condition)

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return jax.random.uniform(key, (1,), self.raw.dtype, self.low, self.high)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Array:
        raw, u = self._raw(condition), noise.reshape(())
        return spline_inverse(raw, u, self.low, self.high)[0]

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        _, log_derivative = spline_forward(self._raw(condition), x, self.low, self.high)
        inside = (x >= self.low) & (x <= self.high)
        return jnp.where(
            inside, log_derivative - math.log(self.high - self.low), -jnp.inf
        )
