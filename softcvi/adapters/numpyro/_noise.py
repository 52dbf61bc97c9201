"""Draws of NumPyro distributions as functions of independent standard normal noise."""

import math
from collections.abc import Callable
from functools import lru_cache, singledispatch
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from softcvi.adapters._extras import require

Shape = tuple[int, ...]


class Noise(NamedTuple):
    """How one distribution makes a draw.

    Attributes:
        shape: Shape of the noise of a draw.
        value: The draw that an array of noise stands for.

    Example:
        >>> Noise((), lambda noise: 2.0 * noise).value(1.5)
        3.0
    """

    shape: Shape
    value: Callable[[Array], Array]

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


def noise_of(fn: Any) -> Noise | None:
    """How a distribution makes its draws from noise; None if that is not known.

    Args:
        fn: A NumPyro distribution.

    Example:
        >>> import jax.numpy as jnp, numpyro.distributions as dist
        >>> noise = noise_of(dist.LogNormal(jnp.zeros(2), 1.0))
        >>> noise.shape, noise.value(jnp.zeros(2)).tolist()
        ((2,), [1.0, 1.0])
    """
    return _rules(require("numpyro", "numpyro"))(fn)


@lru_cache
def _rules(numpyro: Any) -> Callable[[Any], Noise | None]:
    """The rules by type of distribution."""
    dist = numpyro.distributions

    @singledispatch
    def of(fn: Any) -> Noise | None:
        return None

    @of.register(dist.Normal)
    def _(fn):
        return Noise(fn.batch_shape, lambda noise: fn.loc + fn.scale * noise)

    @of.register(dist.MultivariateNormal)
    def _(fn):
        def value(noise):
            return fn.loc + (fn.scale_tril @ noise[..., None])[..., 0]

        return Noise((*fn.batch_shape, *fn.event_shape), value)

    @of.register(dist.LowRankMultivariateNormal)
    def _(fn):
        size, rank = fn.cov_factor.shape[-2:]

        def value(noise):
            own, common = noise[..., :size], noise[..., size:]
            moved = (fn.cov_factor @ common[..., None])[..., 0]
            return fn.loc + moved + jnp.sqrt(fn.cov_diag) * own

        return Noise((*fn.batch_shape, size + rank), value)

    @of.register(dist.Independent)
    @of.register(dist.MaskedDistribution)
    def _(fn):
        return of(fn.base_dist)

    @of.register(dist.ExpandedDistribution)
    def _(fn):
        base = of(fn.base_dist)
        if base is None:
            return None
        own = base.shape[len(fn.base_dist.batch_shape) :]
        # More axes in front: parameters broadcast against them.
        return Noise((*fn.batch_shape, *own), base.value)

    @of.register(dist.TransformedDistribution)
    def _(fn):
        base = of(fn.base_dist)
        if base is None:
            return None

        def value(noise):
            x = base.value(noise)
            for transform in fn.transforms:
                x = transform(x)
            return x

        return Noise(base.shape, value)

    return of
