"""Coupling flow with rational quadratic splines, from FlowJAX."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import AbstractTransformed, StandardNormal
from flowjax.flows import coupling_flow as flowjax_coupling_flow
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._base import VectorGuide
from softcvi.guides._parameters import as_guide_structure
from softcvi.guides._vector import AbstractVectorDistribution
from softcvi.guides._whitened import Whitened


class CouplingFlow(AbstractVectorDistribution):
    """FlowJAX's coupling flow, with the arguments that build it again from a file.

    Args:
        dim: Number of dimensions, at least 2.
        key: Random key for the start values.
        layers: Flow layers.
        width: Hidden units of each layer's network.
        knots: Inner knots of each spline.
        interval: The splines act on ``(-interval, interval)``.

    Example:
        >>> import jax
        >>> from softcvi.guides import CouplingFlow
        >>> CouplingFlow(4, key=jax.random.key(0)).shape
        (4,)
    """

    flow: AbstractTransformed
    rebuild_arguments: dict[str, Any] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    cond_shape: ClassVar[None] = None
    covers_reals: ClassVar[bool] = True
    suggested_rate: ClassVar[float] = 2e-3
    is_flow: ClassVar[bool] = True
    can_be_matched: ClassVar[bool] = True
    has_base: ClassVar[bool] = True

    def __init__(
        self,
        dim: int,
        *,
        key: PRNGKeyArray,
        layers: int = 6,
        width: int = 40,
        knots: int = 8,
        interval: float = 5.0,
    ):
        if dim < 2:
            raise ValueError(
                "dim: a coupling flow needs at least 2 scalars; use "
                "softcvi.guides.spline_flow for one."
            )
        self.flow = flowjax_coupling_flow(
            key,
            base_dist=StandardNormal((dim,)),
            transformer=RationalQuadraticSpline(knots=knots, interval=interval),
            flow_layers=layers,
            nn_width=width,
        )
        self.rebuild_arguments = _Frozen(
            dim=dim, layers=layers, width=width, knots=knots, interval=interval
        )
        self.shape = (dim,)

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self.flow._sample(key)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        return self.flow._log_prob(x)

    def _sample_and_log_prob(self, key: PRNGKeyArray, condition: Array | None = None):
        return self.flow._sample_and_log_prob(key)

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return self.flow.base_dist._sample(key)

    def _from_base(
        self, z: Float[Array, " d"], condition: Array | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        return self.flow.bijection.transform_and_log_det(z)

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> Whitened:
        """This flow behind the affine map to a normal."""
        return Whitened(self, mean, jnp.linalg.cholesky(covariance))


class _Frozen(dict):
    """A dict that can be a static field: hashed by its items."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def coupling_flow(
    target: PyTree,
    *,
    key: PRNGKeyArray,
    layers: int = 6,
    width: int = 40,
    knots: int = 8,
    interval: float = 5.0,
) -> VectorGuide:
    """Coupling spline flow: draws and densities cost the same, in any dimension.

    Args:
        target: The target, or a pytree like one particle of at least 2 scalars.
        key: Random key for the start values.
        layers: Flow layers.
        width: Hidden units of each layer's network.
        knots: Inner knots of each spline.
        interval: The splines act on ``(-interval, interval)``.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> like = {"x": jnp.zeros(4)}
        >>> guide = softcvi.guides.coupling_flow(like, key=jax.random.key(0))
        >>> guide.distribution.shape
        (4,)
    """
    structure = as_guide_structure(target)
    flow = CouplingFlow(
        structure.size,
        key=key,
        layers=layers,
        width=width,
        knots=knots,
        interval=interval,
    )
    return VectorGuide(flow, structure)
