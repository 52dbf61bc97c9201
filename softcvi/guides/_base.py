"""What every guide offers: a distribution on particles that can be drawn and scored."""

from abc import abstractmethod

import equinox as eqx
import jax
import numpy as np
import paramax
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.guides._vector import AbstractVectorDistribution, as_vector_distribution
from softcvi.targets import Structure


class AbstractGuide(eqx.Module):
    """The variational distribution ``q`` over one particle.

    A family writes ``_sample`` and ``_log_prob`` for plain arrays. The public methods
    of the same names replace wrapped parameters (``paramax``) by their values first,
    so that they can be called on any guide. What a family can do beside that is
    declared here, with a default for families that cannot.

    Attributes:
        structure: Names, shapes and dtypes of one particle.

    Example:
        >>> import equinox as eqx, jax, softcvi
        >>> from jax.scipy.stats import norm
        >>> class Standard(softcvi.guides.AbstractGuide):
        ...     structure: softcvi.targets.Structure = eqx.field(
        ...         static=True, default=softcvi.targets.Structure({"x": 0.0})
        ...     )
        ...
        ...     def _sample(self, key, condition=None):
        ...         return {"x": jax.random.normal(key)}
        ...
        ...     def _log_prob(self, particle, condition=None):
        ...         return norm.logpdf(particle["x"])
        >>> particle, log_q = Standard().sample_and_log_prob(jax.random.key(0))
        >>> log_q.shape
        ()
    """

    structure: eqx.AbstractVar[Structure]

    @abstractmethod
    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        """Draw one particle, with parameters already unwrapped."""

    @abstractmethod
    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        """Log density of one particle, with parameters already unwrapped."""

    def _sample_and_log_prob(
        self, key: PRNGKeyArray, condition: PyTree = None
    ) -> tuple[PyTree, Scalar]:
        """Both at once; override where that costs less than one after the other."""
        particle = self._sample(key, condition)
        return particle, self._log_prob(particle, condition)

    def sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        """Draw one particle."""
        return paramax.unwrap(self)._sample(key, condition)

    def log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        """Log density of one particle."""
        return paramax.unwrap(self)._log_prob(particle, condition)

    def sample_and_log_prob(
        self, key: PRNGKeyArray, condition: PyTree = None
    ) -> tuple[PyTree, Scalar]:
        """Draw one particle, with its log density."""
        return paramax.unwrap(self)._sample_and_log_prob(key, condition)

    @property
    def can_be_matched(self) -> bool:
        """Whether ``matched`` can place this guide."""
        return False

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "AbstractGuide | None":
        """The member of this family closest to a normal, or None if not known.

        Used by the start of a fit to place a guide near the posterior.
        """
        return None

    @property
    def is_flow(self) -> bool:
        """Whether the guide is a flow: costly per draw, and any shape can be learnt."""
        return False

    @property
    def has_matrix(self) -> bool:
        """Whether draws go through a full matrix, which a start has found worth it."""
        return False

    @property
    def is_conditional(self) -> bool:
        """Whether draws need a condition, such as the datum of an amortised target."""
        return False

    @property
    def covers_reals(self) -> bool:
        """Whether the density is known to be positive everywhere."""
        return False

    @property
    def suggested_rate(self) -> float:
        """Peak learning rate for this guide as it is, placed or not."""
        return 1e-2

    @property
    def tuned_rate(self) -> float:
        """Peak learning rate once a guide of this family lies on the posterior."""
        return self.suggested_rate

    @property
    def suggested_clip(self) -> float:
        """Norm to which gradients are shortened: only wild ones, by default."""
        return 1000.0

    @property
    def has_base(self) -> bool:
        """Whether a draw is a smooth bijection of a vector: chains can run there."""
        return False

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        raise _missing(self, "base space", "has_base")

    def _from_base(self, z: Float[Array, " d"]) -> tuple[PyTree, Scalar]:
        raise _missing(self, "base space", "has_base")

    def sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        """A vector of the base space, distributed as it should be there."""
        return paramax.unwrap(self)._sample_base(key)

    def from_base(self, z: Float[Array, " d"]) -> tuple[PyTree, Scalar]:
        """Map a vector of the base space to a particle, with ``log |dx/dz|``."""
        return paramax.unwrap(self)._from_base(z)

    @property
    def has_noise(self) -> bool:
        """Whether a draw is a function of independent noise: blocks need that."""
        return self.has_base

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        raise _missing(self, "noise", "has_noise")

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        raise _missing(self, "noise", "has_noise")

    def sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        """The noise of one draw: independent numbers without parameters."""
        return paramax.unwrap(self)._sample_noise(key)

    def from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        """The particle that a vector of noise stands for."""
        return paramax.unwrap(self)._from_noise(noise, condition)

    def noise_owner(self) -> np.ndarray:
        """Which scalar of a particle each number of the noise moves first; -1: all."""
        return np.full(num_noise(self), -1)


class VectorGuide(AbstractGuide):
    """Any FlowJAX distribution of shape ``(D,)`` over the flattened particle.

    Args:
        distribution: A FlowJAX distribution (or one of ours, which conform to that
            interface) on vectors as long as the particle has scalars.
        like: One particle.
        placed: Whether the distribution already lies on the posterior: training then
            takes the family's ``tuned_rate``. ``matched`` says so of what it returns.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from flowjax.distributions import Normal
        >>> from softcvi.guides import VectorGuide
        >>> guide = VectorGuide(Normal(jnp.zeros(3)), like={"a": 0.0, "b": jnp.ones(2)})
        >>> guide.sample(jax.random.key(0))["b"].shape
        (2,)
    """

    distribution: AbstractDistribution
    structure: Structure = eqx.field(static=True)
    placed: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        distribution: AbstractDistribution,
        like: PyTree | Structure,
        *,
        placed: bool = False,
    ):
        self.distribution = distribution
        self.structure = like if isinstance(like, Structure) else Structure(like)
        self.placed = placed
        if self.structure.discrete_names:
            raise ValueError(
                f"like: {list(self.structure.discrete_names)} are discrete, and a "
                "vector guide is continuous. Use softcvi.guides.SiteGuide with a "
                "Categorical or Bernoulli for these sites."
            )
        if distribution.shape != (self.structure.size,):
            raise ValueError(
                f"distribution: has shape {distribution.shape}, but a particle has "
                f"{self.structure.size} scalars; shape ({self.structure.size},) needed."
            )

    @property
    def _family(self) -> AbstractVectorDistribution:
        return as_vector_distribution(self.distribution)

    def _sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        return self.structure.unravel(self.distribution._sample(key, condition))

    def _log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        vector = jax.numpy.asarray(self.structure.ravel(particle))
        return self.distribution._log_prob(vector, condition)

    def _sample_and_log_prob(
        self, key: PRNGKeyArray, condition: PyTree = None
    ) -> tuple[PyTree, Scalar]:
        vector, log_prob = self.distribution._sample_and_log_prob(key, condition)
        return self.structure.unravel(vector), log_prob

    @property
    def can_be_matched(self) -> bool:
        return self._family.can_be_matched

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "VectorGuide | None":
        matched = self._family.matched(mean, covariance)
        if matched is None:
            return None
        return VectorGuide(matched, self.structure, placed=True)

    @property
    def is_flow(self) -> bool:
        return self._family.is_flow

    @property
    def has_matrix(self) -> bool:
        return self._family.has_matrix

    @property
    def is_conditional(self) -> bool:
        return self.distribution.cond_shape is not None

    @property
    def covers_reals(self) -> bool:
        return self._family.covers_reals

    @property
    def suggested_rate(self) -> float:
        return self.tuned_rate if self.placed else self._family.suggested_rate

    @property
    def tuned_rate(self) -> float:
        return self._family.tuned_rate

    @property
    def suggested_clip(self) -> float:
        return self._family.suggested_clip

    @property
    def has_base(self) -> bool:
        return self._family.has_base

    def _sample_base(self, key: PRNGKeyArray) -> Float[Array, " d"]:
        return self._family._sample_base(key)

    def _from_base(self, z: Float[Array, " d"]) -> tuple[PyTree, Scalar]:
        vector, log_det = self._family._from_base(z)
        return self.structure.unravel(vector), log_det

    @property
    def has_noise(self) -> bool:
        return self._family.has_noise

    def _sample_noise(self, key: PRNGKeyArray) -> Float[Array, " noise"]:
        return self._family._sample_noise(key)

    def _from_noise(
        self, noise: Float[Array, " noise"], condition: PyTree = None
    ) -> PyTree:
        return self.structure.unravel(self._family._from_noise(noise, condition))

    def noise_owner(self) -> np.ndarray:
        return self._family._noise_owner()


def num_noise(guide: AbstractGuide) -> int:
    """Length of the noise vector of one draw."""
    return eqx.filter_eval_shape(guide.sample_noise, jax.random.key(0)).shape[0]


def _missing(guide: AbstractGuide, what: str, question: str) -> NotImplementedError:
    return NotImplementedError(
        f"guide: {type(guide).__name__} has no {what}; ask {question} first."
    )
