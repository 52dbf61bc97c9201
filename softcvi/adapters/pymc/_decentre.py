"""Non-centred coordinates for hierarchical variables of PyMC models."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
from jaxtyping import Array, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import LONGEST_BY_STEPS, Prior
from softcvi.adapters.pymc._series import Series, read_series
from softcvi.adapters.pymc._standardising import AbstractStandardising
from softcvi.targets import Informed


class Standardising(AbstractStandardising):
    """A variable with a location and a scale.

    Attributes:
        name: The variable.
        parameters: Function of all values to location, scale (of a vector its
            covariance) and degrees of freedom.
        log_prob: Log density of the twin, given degrees of freedom.
        is_matrix: Whether the scale is a covariance.
    """

    name: str = eqx.field(static=True)
    parameters: Callable = eqx.field(static=True)
    log_prob: Callable = eqx.field(static=True)
    is_matrix: bool = eqx.field(static=True)

    def prior(self, values: list) -> Prior:
        location, scale, _ = self.parameters(*values)
        if self.is_matrix:
            scale = jnp.linalg.cholesky(scale)
        return Prior(location, scale, self.is_matrix)

    def standard_log_prob(
        self, u: Array, values: list, data: Informed | None = None
    ) -> Scalar:
        location, scale, degrees = self.parameters(*values)
        if data is None:
            return jnp.sum(self.log_prob(u, degrees))
        z, log_det = data.by_prior(u, location, scale)
        return jnp.sum(self.log_prob(z, degrees) + log_det)

    def forward(
        self, z: Array, values: list, data: Informed | None = None
    ) -> tuple[Array, Scalar]:
        location, scale, log_det = self._at(z, values, data)
        if self.is_matrix:
            return location + jnp.einsum("...ij,...j->...i", scale, z), log_det
        return location + scale * z, log_det

    def backward(
        self, value: Array, values: list, data: Informed | None = None
    ) -> Array:
        location, scale, _ = self._at(value, values, data)
        if self.is_matrix:
            shift = jnp.broadcast_to(value - location, value.shape)[..., None]
            factor = jnp.broadcast_to(scale, (*value.shape, value.shape[-1]))
            return jax.scipy.linalg.solve_triangular(factor, shift, lower=True)[..., 0]
        return (value - location) / scale

    def _at(
        self, like: Array, values: list, data: Informed | None
    ) -> tuple[Array, Array, Scalar]:
        location, scale, is_matrix = self.prior(values)
        if data is not None:
            location, scale = data.given(location, scale)
        diagonal = jnp.diagonal(scale, axis1=-2, axis2=-1) if is_matrix else scale
        # Rounding may bring a scale to zero, where nothing can be standardised.
        log_det = jnp.sum(jnp.broadcast_to(jnp.log(jnp.abs(diagonal)), like.shape))
        return location, scale, log_det


def standardisings(
    model: Any, values: list, jaxify: Callable
) -> tuple[AbstractStandardising, ...]:
    """Variables whose location or scale depends on others, and normal series.

    Args:
        model: The PyMC model.
        values: Its value variables, in the order of the free variables.
        jaxify: PyMC's translator of graphs.
    """
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    found: list[AbstractStandardising] = []

    def translated(graphs: list) -> Callable:
        return jaxify(inputs=values, outputs=model.replace_rvs_by_values(graphs))

    point = model.initial_point()
    for rv in model.free_RVs:
        series = None if model.rvs_to_transforms[rv] else read_series(rv)
        if series is not None:
            if point[rv.name].size > LONGEST_BY_STEPS:
                continue
            graphs, num_first, sums = series
            found.append(Series(rv.name, translated(graphs), num_first, sums))
            continue
        family = _FAMILIES.get(str(getattr(rv.owner.op, "name", None)))
        if family is None:
            continue
        parameters = rv.owner.op.dist_params(rv.owner)
        parts = family.read(parameters, model.rvs_to_transforms[rv])
        if parts is None:
            continue
        location, scale, degrees = parts
        others = set(model.free_RVs) - {rv}
        if not others & set(ancestors([location, scale])):
            continue
        function = translated([location, scale, degrees])
        is_matrix = family.read is _vector
        found.append(Standardising(rv.name, function, family.log_prob, is_matrix))
    return tuple(found)


def _plain(parameters: tuple, transform: Any) -> tuple[Any, Any, Any] | None:
    if transform is not None:
        return None
    location, scale = parameters[-2:]
    return location, scale, parameters[0] if len(parameters) == 3 else _one()


def _vector(parameters: tuple, transform: Any) -> tuple[Any, Any, Any] | None:
    location, covariance = parameters
    return None if transform is not None else (location, covariance, _one())


def _half(parameters: tuple, transform: Any) -> tuple[Any, Any, Any] | None:
    """Positive variables: their logarithm is moved by that of the scale."""
    pytensor = require("pytensor.tensor", "pymc")
    if not _is_log(transform):
        return None
    return pytensor.log(parameters[-1]), _one(), _one()


def _log_normal(parameters: tuple, transform: Any) -> tuple[Any, Any, Any] | None:
    return _plain(parameters, None) if _is_log(transform) else None


def _is_log(transform: Any) -> bool:
    transforms = require("pymc.distributions.transforms", "pymc")
    return isinstance(transform, transforms.LogTransform)


def _one() -> Any:
    return require("pytensor.tensor", "pymc").constant(1.0)


class _Family(NamedTuple):
    """How parameters are read, and the log density of a standardised variable."""

    read: Callable
    log_prob: Callable


# By the names of PyTensor's random operations; location and scale come last.
_FAMILIES: dict[str, _Family] = {
    "normal": _Family(_plain, lambda u, _: stats.norm.logpdf(u)),
    "lognormal": _Family(_log_normal, lambda u, _: stats.norm.logpdf(u)),
    "laplace": _Family(_plain, lambda u, _: stats.laplace.logpdf(u)),
    "cauchy": _Family(_plain, lambda u, _: stats.cauchy.logpdf(u)),
    "t": _Family(_plain, stats.t.logpdf),
    "multivariate_normal": _Family(_vector, lambda u, _: stats.norm.logpdf(u)),
    "halfnormal": _Family(
        _half, lambda u, _: jnp.log(2.0) + stats.norm.logpdf(jnp.exp(u)) + u
    ),
    "halfcauchy": _Family(
        _half, lambda u, _: jnp.log(2.0) + stats.cauchy.logpdf(jnp.exp(u)) + u
    ),
}
