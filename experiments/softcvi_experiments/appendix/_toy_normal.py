"""The toy normal of the paper's appendix, with the log sd itself as parameter."""

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from flowjax.distributions import AbstractDistribution
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

from softcvi.guides import VectorGuide
from softcvi.targets import DensityTarget

TRUE_MEAN = 4 / 5
TRUE_LOG_SD = 0.5 * math.log(4 / 5)


def toy_normal_target(dim: int) -> DensityTarget:
    """Posterior of the mean: ``theta ~ N(0, 4 I)``, ``x ~ N(theta, I)``, ``x = 1``.

    Args:
        dim: Number of dimensions.

    Example:
        >>> round(float(toy_normal_target(2).log_density(jnp.zeros(2))), 4)
        -6.062
    """

    def log_prob(theta: Array) -> Scalar:
        return jnp.sum(norm.logpdf(theta, 0.0, 2.0) + norm.logpdf(1.0, theta, 1.0))

    return DensityTarget(log_prob, jnp.zeros(dim))


class LogScaleNormal(AbstractDistribution):
    """Independent normals whose parameters are the mean and the log sd.

    The library's guides reach a positive scale through softplus. Gradients depend on
    the parameterisation, and the paper's figure is about the log sd.

    Args:
        loc: Means.
        log_sd: Logarithms of the standard deviations.

    Example:
        >>> normal = LogScaleNormal(jnp.zeros(2), jnp.zeros(2))
        >>> round(float(normal.log_prob(jnp.zeros(2))), 4)
        -1.8379
    """

    loc: Array
    log_sd: Array
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None

    def __init__(self, loc: Float[Array, " d"], log_sd: Float[Array, " d"]):
        self.loc, self.log_sd = loc, log_sd
        self.shape = loc.shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self.loc + jnp.exp(self.log_sd) * jr.normal(key, self.shape)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        z = (x - self.loc) * jnp.exp(-self.log_sd)
        return jnp.sum(norm.logpdf(z) - self.log_sd)


def toy_normal_guide(
    dim: int, mean: Scalar | float, log_sd: Scalar | float
) -> VectorGuide:
    """A guide with the same mean and log sd in every dimension.

    Args:
        dim: Number of dimensions.
        mean: The mean.
        log_sd: The logarithm of the standard deviation.

    Example:
        >>> toy_normal_guide(3, 0.0, 0.0).distribution.log_sd.shape
        (3,)
    """
    ones = jnp.ones(dim)
    return VectorGuide(LogScaleNormal(mean * ones, log_sd * ones), ones)
