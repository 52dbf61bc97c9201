"""Coordinates between centred and non-centred ones, as far as the data say."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

# A standardised spread from which on the data say nothing: a tenth of the precision.
_UNINFORMED = 0.95


class Informed(eqx.Module):
    """What the data say of scalars whose prior has a location and a scale.

    The data count as one measurement of each scalar, with a normal error. Given its
    prior, ``normal(location, scale)``, the scalar then is normal with the location and
    scale of ``given``. Standardised by these it no longer depends on the parameters
    that set its prior: exactly so for normal data of known error, and nearly in other
    hierarchies. Without data these are non-centred coordinates, with many centred ones.

    Args:
        precision: Of the measurement.
        centre: What was measured.
        is_relative: Whether that is the difference from the location of the prior.
            Where ``y`` measures ``a[i] + b[j]``, data tell how the members of each
            differ, and neither level.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> precision, centre = jnp.array([0.0, 1.0]), jnp.array([9.0, 4.0])
        >>> data = softcvi.targets.Informed(precision, centre)
        >>> location, scale = data.given(2.0, 1.0)
        >>> location.tolist(), scale.round(2).tolist()
        ([2.0, 3.0], [1.0, 0.7099999785423279])
    """

    precision: Float[Array, "..."]
    centre: Float[Array, "..."]
    is_relative: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(
        cls,
        value: ArrayLike,
        spread: ArrayLike,
        location: ArrayLike,
        scale: ArrayLike,
        *,
        is_relative: bool = False,
    ) -> "Informed | None":
        """From standardised scalars that were found; None where data say nothing.

        Args:
            value: Their values.
            spread: Their standard deviations, given the parameters that are not
                standardised; those of the prior are one.
            location: Location of the prior, where they were found.
            scale: Scale of the prior there.
            is_relative: Whether the data tell the difference from the location.
        """
        location = np.zeros_like(location) if is_relative else location
        value, spread, location, scale = np.broadcast_arrays(
            *(np.asarray(a, np.float64) for a in (value, spread, location, scale))
        )
        knows = (spread > 0) & (spread < _UNINFORMED) & (scale > 0)
        knows &= np.isfinite(value) & np.isfinite(location) & np.isfinite(scale)
        if not np.any(knows):
            return None
        gain = 1 / np.where(knows, spread, 1.0) ** 2 - 1
        scale = np.where(knows, scale, 1.0)
        # Where prior and data balance: value = gain * (measured - value), standardised.
        measured = np.where(knows, value + value / np.where(knows, gain, 1.0), 0.0)
        precision = np.where(knows, gain / scale**2, 0.0)
        centre = np.where(knows, location + scale * measured, 0.0)
        both = jnp.asarray(precision, float), jnp.asarray(centre, float)
        return cls(*both, is_relative)

    def given(
        self, location: ArrayLike, scale: ArrayLike
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Location and scale given data and prior.

        Args:
            location: Of the prior.
            scale: Of the prior.
        """
        share = self._share_of_prior(scale)
        moved = location + self._away(location) * (1 - share)
        return moved, scale * jnp.sqrt(share)

    def by_prior(
        self, u: Float[Array, "..."], location: ArrayLike, scale: ArrayLike
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Scalars standardised by the prior alone, with the log of their change.

        No value is computed, in which a tiny scale would be rounded away.

        Args:
            u: Scalars standardised by prior and data.
            location: Of the prior.
            scale: Of the prior.
        """
        share = self._share_of_prior(scale)
        pull = self._away(location) * self.precision * scale
        return jnp.sqrt(share) * u + share * pull, 0.5 * jnp.log(share)

    def _share_of_prior(self, scale: ArrayLike) -> Float[Array, "..."]:
        root = jnp.sqrt(self.precision) * scale
        return 1 / (1 + root**2)

    def _away(self, location: ArrayLike) -> Float[Array, "..."]:
        """From the location of the prior to what was measured."""
        return self.centre if self.is_relative else self.centre - location
