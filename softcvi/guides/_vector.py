"""What a distribution of a guide offers beside FlowJAX's interface."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, Scalar

# What is left to do for a family that lies on the posterior is fine-tuning, and noise
# grows with the rate. Full-rank normals on a logistic regression with 60 parameters
# had weights with an effective share of .275, .260 and .183 after 10,000 steps at
# rates of 1e-3, 2e-3 and 5e-3, and of .018, .070 and .019 after 2,000; with up to 20
# parameters there was no difference.
_TUNED_RATE = 2e-3


class AbstractVectorDistribution(AbstractDistribution):
    """A FlowJAX distribution that says what a fit can ask of its family.

    Methods with a leading underscore work on unwrapped parameters, as FlowJAX's do.
    A family that overrides nothing can be trained, and no more.

    Example:
        >>> from softcvi.guides import AbstractVectorDistribution, DiagonalNormal
        >>> issubclass(DiagonalNormal, AbstractVectorDistribution)
        True
        >>> DiagonalNormal.covers_reals
        True
    """

    covers_reals: ClassVar[bool | property] = False
    is_flow: ClassVar[bool | property] = False
    has_matrix: ClassVar[bool] = False
    can_be_matched: ClassVar[bool | property] = False
    has_base: ClassVar[bool | property] = False
    suggested_rate: ClassVar[float | property] = 1e-2
    suggested_clip: ClassVar[float | property] = 1000.0

    @property
    def tuned_rate(self) -> float:
        """Peak learning rate once a member of this family lies on the posterior."""
        # A flow is only put behind an affine map, and has everything still to learn.
        return self.suggested_rate if self.is_flow else _TUNED_RATE

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "AbstractVectorDistribution | None":
        """The member of this family closest to a normal; None if that is not known."""
        return None

    def _sample_base(self, key: PRNGKeyArray) -> Array:
        """A point of the base space, distributed as it should be there."""
        raise _missing(self, "base space")

    def _from_base(
        self, z: Array, condition: Array | None = None
    ) -> tuple[Array, Scalar]:
        """Map a point of the base space to a draw, with ``log |dx/dz|``."""
        raise _missing(self, "base space")

    @property
    def has_noise(self) -> bool:
        """Whether a draw is a function of a vector of independent noise."""
        return self.has_base

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        """The noise of one draw: independent numbers without parameters."""
        if not self.has_base:
            raise _missing(self, "noise")
        return jnp.ravel(self._sample_base(key))

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: Array | None = None
    ) -> Array:
        """The draw that a vector of noise stands for."""
        return self._from_base(noise.reshape(self.shape), condition)[0]

    def _noise_owner(self) -> np.ndarray:
        """Which scalar of a draw each number of the noise moves first; -1 for all."""
        return np.arange(int(np.prod(self.shape, dtype=int)))


class PlainDistribution(AbstractVectorDistribution):
    """A distribution of FlowJAX or of a user, with the default of every capability.

    Args:
        distribution: Any FlowJAX distribution.

    Example:
        >>> from flowjax.distributions import Normal
        >>> as_vector_distribution(Normal(0.0)).can_be_matched
        False
    """

    distribution: AbstractDistribution

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the distribution."""
        return self.distribution.shape

    @property
    def cond_shape(self) -> tuple[int, ...] | None:
        """That of the distribution."""
        return self.distribution.cond_shape

    def _sample(self, key: PRNGKeyArray, condition: Array | None = None) -> Array:
        return self.distribution._sample(key, condition)

    def _log_prob(self, x: Array, condition: Array | None = None) -> Scalar:
        return self.distribution._log_prob(x, condition)

    def _sample_and_log_prob(self, key: PRNGKeyArray, condition: Array | None = None):
        return self.distribution._sample_and_log_prob(key, condition)


def as_vector_distribution(
    distribution: AbstractDistribution,
) -> AbstractVectorDistribution:
    """The distribution itself, or a plain one with the default capabilities."""
    if isinstance(distribution, AbstractVectorDistribution):
        return distribution
    return PlainDistribution(distribution)


def _missing(distribution: AbstractDistribution, what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{type(distribution).__name__} has no {what}; ask has_base or has_noise first."
    )


def num_noise(distribution: AbstractVectorDistribution) -> int:
    """Length of the noise vector of one draw."""
    return jax.eval_shape(distribution._sample_noise, jax.random.key(0)).shape[0]
