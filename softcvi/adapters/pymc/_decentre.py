"""Non-centred coordinates for hierarchical variables of PyMC models."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Scalar

from softcvi.adapters._extras import require
from softcvi.adapters._recentre import Prior
from softcvi.targets import Informed


class Standardising(eqx.Module):
    """How one variable follows from its standardised twin, given the others.

    Attributes:
        name: The variable.
        parameters: Function of all values to location and scale; the scale of a
            vector is the lower triangular factor of its covariance.
        is_matrix: Whether the scale is such a factor.
    """

    name: str = eqx.field(static=True)
    parameters: Callable = eqx.field(static=True)
    is_matrix: bool = eqx.field(static=True)

    def prior(self, values: list) -> Prior:
        """Location and scale, given the other variables."""
        location, scale = self.parameters(*values)
        if self.is_matrix:
            scale = jnp.linalg.cholesky(scale)
        return Prior(location, scale, self.is_matrix)

    def forward(
        self, z: Array, values: list, data: Informed | None = None
    ) -> tuple[Array, Scalar]:
        """The value, and the log Jacobian."""
        location, scale, log_det = self._at(z, values, data)
        if self.is_matrix:
            return location + jnp.einsum("...ij,...j->...i", scale, z), log_det
        return location + scale * z, log_det

    def backward(
        self, value: Array, values: list, data: Informed | None = None
    ) -> Array:
        """The standardised twin of a value."""
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
) -> tuple[Standardising, ...]:
    """The variables whose location or scale depends on other free variables.

    Args:
        model: The PyMC model.
        values: Its value variables, in the order of the free variables.
        jaxify: PyMC's translator of graphs.
    """
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    found = []
    for rv in model.free_RVs:
        parts = _location_and_scale(rv, model.rvs_to_transforms[rv])
        if parts is None:
            continue
        location, scale, is_matrix = parts
        others = set(model.free_RVs) - {rv}
        if not others & set(ancestors([location, scale])):
            continue
        outputs = model.replace_rvs_by_values([location, scale])
        function = jaxify(inputs=values, outputs=outputs)
        found.append(Standardising(rv.name, function, is_matrix))
    return tuple(found)


def _location_and_scale(rv: Any, transform: Any) -> tuple[Any, Any, bool] | None:
    """Of the value variable, as PyTensor expressions; None for other families."""
    op = rv.owner.op
    reader = _READERS.get(str(getattr(op, "name", None)))
    if reader is None:
        return None
    return reader(op.dist_params(rv.owner), transform)


def _plain(parameters: tuple, transform: Any) -> tuple[Any, Any, bool] | None:
    location, scale = parameters[-2:]
    return None if transform is not None else (location, scale, False)


def _vector(parameters: tuple, transform: Any) -> tuple[Any, Any, bool] | None:
    location, covariance = parameters
    return None if transform is not None else (location, covariance, True)


def _half(parameters: tuple, transform: Any) -> tuple[Any, Any, bool] | None:
    """Positive variables: their logarithm is moved by that of the scale."""
    pytensor = require("pytensor.tensor", "pymc")
    log_transform = require("pymc.distributions.transforms", "pymc").LogTransform
    if not isinstance(transform, log_transform):
        return None
    return pytensor.log(parameters[-1]), pytensor.constant(1.0), False


# By the names of PyTensor's random operations; location and scale come last.
_READERS: dict[str, Callable] = {
    "normal": _plain,
    "laplace": _plain,
    "cauchy": _plain,
    "t": _plain,
    "multivariate_normal": _vector,
    "halfnormal": _half,
    "halfcauchy": _half,
}
