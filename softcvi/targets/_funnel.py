"""Coordinates in which a funnel is a normal: scales that depend on other parameters."""

import copy
import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.targets._base import AbstractTarget
from softcvi.targets._space import AbstractSpace, lost_in_rounding
from softcvi.targets._structure import Structure

# Log scales beyond this are cut off: float32 ends at 88, and gradients before that.
_LARGEST_LOG_SCALE = 40.0


class FunnelSpace(AbstractSpace):
    """Some scalars are fitted relative to a location and a scale set by the others.

    With the others ``g``, a scalar of the space inside is
    ``centre + loc_slope (g - g0) + exp(log_scale_slope (g - g0)) u``. Neal's funnel is
    a normal in ``u``; for a hierarchy these are non-centred coordinates, or something
    between centred and non-centred ones where data say how much.

    Args:
        inner: The space that the scalars belong to.
        structure: Structure of a particle.
        children: Which scalars of the flat particle are fitted in this way.
        centre: A point of the inner space: ``g0`` and the locations there.
        loc_slope: Change of location per unit of each other scalar.
        log_scale_slope: Change of log scale per unit of each other scalar.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> space = softcvi.targets.FunnelSpace(
        ...     softcvi.targets.ModelSpace(), softcvi.targets.Structure(jnp.zeros(2)),
        ...     (1,), jnp.zeros(2), jnp.zeros((1, 1)), jnp.full((1, 1), 0.5),
        ... )
        >>> space.to_model(jnp.array([2.0, 1.0])).round(2).tolist()
        [2.0, 2.7200000286102295]
    """

    inner: AbstractSpace
    structure: Structure = eqx.field(static=True)
    children: tuple[int, ...] = eqx.field(static=True)
    centre: Float[Array, " d"]
    loc_slope: Float[Array, "c g"]
    log_scale_slope: Float[Array, "c g"]

    def to_model_and_log_det(self, u: PyTree) -> tuple[PyTree, Scalar]:
        flat = self.structure.ravel(u)
        loc, log_scale = self._affine(flat)
        own = flat[np.array(self.children)]
        child = loc + jnp.exp(log_scale) * own
        lost = lost_in_rounding(own, (child - loc) * jnp.exp(-log_scale))
        inside = self._with_children(flat, child)
        x, log_det = self.inner.to_model_and_log_det(inside)
        return x, log_det + jnp.sum(log_scale) + lost

    def from_model_and_log_det(self, x: PyTree) -> tuple[PyTree, Scalar]:
        inside, log_det = self.inner.from_model_and_log_det(x)
        flat = self.structure.ravel(inside)
        loc, log_scale = self._affine(flat)
        child = (flat[np.array(self.children)] - loc) * jnp.exp(-log_scale)
        return self._with_children(flat, child), log_det - jnp.sum(log_scale)

    def stored(self) -> "FunnelSpace":
        return self.around(self.inner.stored())

    @property
    def needs_model(self) -> bool:
        return self.inner.needs_model

    def around(self, inner: AbstractSpace) -> "FunnelSpace":
        """The same coordinates relative to another space.

        Args:
            inner: That space.
        """
        return dataclasses.replace(self, inner=inner)

    def _affine(self, flat: Array) -> tuple[Array, Array]:
        children = np.array(self.children)
        others = np.setdiff1d(np.arange(self.structure.size), children)
        centre = self.centre.astype(flat.dtype)
        away = flat[others] - centre[others]
        limit = _LARGEST_LOG_SCALE
        log_scale = jnp.clip(self.log_scale_slope @ away, -limit, limit)
        return centre[children] + self.loc_slope @ away, log_scale

    def _with_children(self, flat: Array, child: Array) -> PyTree:
        return self.structure.unravel(flat.at[np.array(self.children)].set(child))


def through_funnel(target: AbstractTarget, funnel: FunnelSpace) -> AbstractTarget:
    """The same posterior in coordinates relative to those that a target has.

    Args:
        target: A target that ``maps_by_space``.
        funnel: The coordinates; what is inside them is replaced.
    """
    moved = copy.copy(target)
    # A copy with one field replaced, whatever the class takes to be made.
    object.__setattr__(moved, "space", funnel.around(target.space))
    return moved
