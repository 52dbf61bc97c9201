"""Random walks and autoregressions of PyMC, fitted by their steps."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
from jaxtyping import Array, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import Prior
from softcvi.adapters.pymc._standardising import AbstractStandardising
from softcvi.targets import Informed


class Series(AbstractStandardising):
    """A normal series, each value standardised given those before it.

    Attributes:
        name: The variable.
        parameters: Function of all values to location and scale of the first values,
            those of the innovations, and the weights of earlier values, latest first.
        num_first: How many values are the first ones.
        sums: Whether each value is the one before it and an innovation. Time is then
            the first axis of the parameters, otherwise the last one.
    """

    name: str = eqx.field(static=True)
    parameters: Callable = eqx.field(static=True)
    num_first: int = eqx.field(static=True)
    sums: bool = eqx.field(static=True)

    def prior(self, values: list) -> Prior:
        # What the data say of one step is about all that follow too: a series is
        # standardised as a whole, like a vector with a matrix.
        location, scale, *_ = self.parameters(*values)
        return Prior(location, scale, is_matrix=True)

    def standard_log_prob(
        self, u: Array, values: list, data: Informed | None = None
    ) -> Scalar:
        return jnp.sum(stats.norm.logpdf(u))

    def forward(
        self, z: Array, values: list, data: Informed | None = None
    ) -> tuple[Array, Scalar]:
        location, scale, weights = self._by_step(z.shape, values)
        log_det = jnp.sum(jnp.log(jnp.abs(scale)))
        innovations = location + scale * z
        if self.sums:
            return jnp.cumsum(innovations, -1), log_det

        def step(before: Array, at: tuple) -> tuple[Array, Array]:
            innovation, weights = at
            value = innovation + jnp.sum(weights * before, -1)
            return jnp.concatenate([value[..., None], before[..., :-1]], -1), value

        start = jnp.zeros((*z.shape[:-1], self.num_first), innovations.dtype)
        by_time = jnp.moveaxis(innovations, -1, 0), jnp.moveaxis(weights, -2, 0)
        return jnp.moveaxis(jax.lax.scan(step, start, by_time)[1], 0, -1), log_det

    def backward(
        self, value: Array, values: list, data: Informed | None = None
    ) -> Array:
        location, scale, weights = self._by_step(value.shape, values)
        length = value.shape[-1]
        for i in range(self.num_first):
            earlier = jnp.pad(value, [(0, 0)] * (value.ndim - 1) + [(i + 1, 0)])
            location = location + weights[..., i] * earlier[..., :length]
        return (value - location) / scale

    def _by_step(self, shape: tuple, values: list) -> tuple[Array, Array, Array]:
        """Location, scale and weights of earlier values, by series and step."""
        first_location, first_scale, location, scale, weights = self.parameters(*values)
        batch = shape[:-1]
        counts = self.num_first, shape[-1] - self.num_first

        def joined(first: Array, later: Array) -> Array:
            parts = zip((first, later), counts, strict=True)
            return jnp.concatenate([by_time(value, n) for value, n in parts], -1)

        def by_time(value: Array, n: int) -> Array:
            if not self.sums:
                return jnp.broadcast_to(value, (*batch, n))
            return jnp.moveaxis(jnp.broadcast_to(value, (n, *batch)), 0, -1)

        order = (self.num_first,)
        weights = [
            jnp.zeros((*batch, counts[0], *order)),
            jnp.broadcast_to(weights[..., None, :], (*batch, counts[1], *order)),
        ]
        return (
            joined(first_location, location),
            joined(first_scale, scale),
            jnp.concatenate(weights, -2),
        )


def read_series(rv: Any) -> tuple[list, int, bool] | None:
    """Graphs of the parameters of a series, number of first values, whether it sums.

    Args:
        rv: The random variable; None comes back where it is no normal series.
    """
    series = require("pymc.distributions.timeseries", "pymc")
    op = rv.owner.op
    if isinstance(op, series.RandomWalkRV):
        first, innovation, _ = rv.owner.inputs
        if _is_normal(first) and _is_normal(innovation):
            return _random_walk(first, innovation), 1, True
    if isinstance(op, series.AutoRegressiveRV):
        weights, scale, first, *_ = rv.owner.inputs
        if _is_normal(first):
            parts = _autoregression(rv, weights, scale, first)
            return parts, op.ar_order, False
    return None


def _random_walk(first: Any, innovation: Any) -> list:
    # Time is the first axis of their parameters, and the last one of the walk.
    one = require("pytensor.tensor", "pymc").ones((1,))
    return [*_parameters(first), *_parameters(innovation), one]


def _autoregression(rv: Any, weights: Any, scale: Any, first: Any) -> list:
    location = require("pytensor.tensor", "pymc").zeros((1,))
    if rv.owner.op.constant_term:
        location, weights = weights[..., :1], weights[..., 1:]
    return [*_parameters(first), location, scale[..., None], weights]


def _parameters(rv: Any) -> tuple:
    return tuple(rv.owner.op.dist_params(rv.owner))


def _is_normal(rv: Any) -> bool:
    return getattr(rv.owner.op, "name", None) == "normal"
