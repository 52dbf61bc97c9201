"""What every way of standardising a PyMC variable offers."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Scalar

from softcvi.adapters._recentre import Prior
from softcvi.targets import Informed


class AbstractStandardising(eqx.Module):
    """How one variable follows from its standardised twin, given the others."""

    name: eqx.AbstractVar[str]

    @abstractmethod
    def prior(self, values: list) -> Prior:
        """Location and scale, given the other variables.

        The scale of a vector is the lower triangular factor of its covariance.
        """

    @abstractmethod
    def standard_log_prob(
        self, u: Array, values: list, data: Informed | None = None
    ) -> Scalar:
        """Log density of the twin, without a way through its value.

        The value is rounded, and where the scale is tiny beside the location nothing of
        the twin is left in it: a hierarchy would have a mode at a scale of zero that is
        made of rounding alone.

        Args:
            u: The twin.
            values: Values of all variables.
            data: What the data say of the variable, if that is used.
        """

    @abstractmethod
    def forward(
        self, z: Array, values: list, data: Informed | None = None
    ) -> tuple[Array, Scalar]:
        """The value, and the log Jacobian."""

    @abstractmethod
    def backward(
        self, value: Array, values: list, data: Informed | None = None
    ) -> Array:
        """The standardised twin of a value."""
