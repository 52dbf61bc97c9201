"""What every guide offers: a distribution on particles that can be drawn and scored."""

from abc import abstractmethod

import equinox as eqx
import jax
from flowjax.distributions import AbstractDistribution
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi.targets import Structure


class AbstractGuide(eqx.Module):
    """The variational distribution ``q``: unbatched ``sample`` and ``log_prob``.

    Positive parameters and frozen ones are wrapped with ``paramax``; the library
    unwraps a guide once before it calls these methods, and so must anyone who calls
    them directly (``paramax.unwrap(guide)``).

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
        ...     def sample(self, key, condition=None):
        ...         return {"x": jax.random.normal(key)}
        ...
        ...     def log_prob(self, particle, condition=None):
        ...         return norm.logpdf(particle["x"])
        >>> particle, log_q = Standard().sample_and_log_prob(jax.random.key(0))
        >>> log_q.shape
        ()
    """

    structure: eqx.AbstractVar[Structure]

    @abstractmethod
    def sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        """Draw one particle."""

    @abstractmethod
    def log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        """Log density of one particle."""

    def sample_and_log_prob(
        self, key: PRNGKeyArray, condition: PyTree = None
    ) -> tuple[PyTree, Scalar]:
        """Draw one particle, with its log density."""
        particle = self.sample(key, condition)
        return particle, self.log_prob(particle, condition)

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "AbstractGuide | None":
        """The member of this family closest to a normal, or None if not known.

        Used by the start of a fit to place a guide near the posterior.
        """
        return None

    @property
    def covers_reals(self) -> bool:
        """Whether the density is known to be positive everywhere."""
        return False

    @property
    def suggested_rate(self) -> float:
        """Peak learning rate that suits this family on a roughly whitened space."""
        return 1e-2

    @property
    def suggested_clip(self) -> float:
        """Norm to which gradients are shortened: only wild ones, by default."""
        return 1000.0


class VectorGuide(AbstractGuide):
    """Any FlowJAX distribution of shape ``(D,)`` over the flattened particle.

    Args:
        distribution: A FlowJAX distribution (or one of ours, which conform to that
            interface) on vectors as long as the particle has scalars.
        like: One particle.

    Example:
        >>> import jax, jax.numpy as jnp, paramax
        >>> from flowjax.distributions import Normal
        >>> from softcvi.guides import VectorGuide
        >>> guide = VectorGuide(Normal(jnp.zeros(3)), like={"a": 0.0, "b": jnp.ones(2)})
        >>> paramax.unwrap(guide).sample(jax.random.key(0))["b"].shape
        (2,)
    """

    distribution: AbstractDistribution
    structure: Structure = eqx.field(static=True)

    def __init__(self, distribution: AbstractDistribution, like: PyTree | Structure):
        self.distribution = distribution
        self.structure = like if isinstance(like, Structure) else Structure(like)
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

    def sample(self, key: PRNGKeyArray, condition: PyTree = None) -> PyTree:
        return self.structure.unravel(self.distribution._sample(key, condition))

    def log_prob(self, particle: PyTree, condition: PyTree = None) -> Scalar:
        return self.distribution._log_prob(self.structure.ravel(particle), condition)

    def sample_and_log_prob(
        self, key: PRNGKeyArray, condition: PyTree = None
    ) -> tuple[PyTree, Scalar]:
        vector, log_prob = self.distribution._sample_and_log_prob(key, condition)
        return self.structure.unravel(vector), log_prob

    def matched(
        self, mean: Float[Array, " d"], covariance: Float[Array, "d d"]
    ) -> "VectorGuide | None":
        match = getattr(self.distribution, "matched", None)
        matched = None if match is None else match(mean, covariance)
        return None if matched is None else VectorGuide(matched, self.structure)

    @property
    def covers_reals(self) -> bool:
        return getattr(self.distribution, "covers_reals", False)

    @property
    def suggested_rate(self) -> float:
        return getattr(self.distribution, "suggested_rate", 1e-2)

    @property
    def suggested_clip(self) -> float:
        own = getattr(self.distribution, "suggested_clip", None)
        return super().suggested_clip if own is None else own


def as_guide_structure(target_or_like) -> Structure:
    """The structure that a guide constructor was given: a target's, or a pytree's."""
    structure = getattr(target_or_like, "structure", target_or_like)
    return structure if isinstance(structure, Structure) else Structure(structure)


def float_dtype(structure: Structure):
    """The widest dtype of a particle, in which a guide keeps its parameters."""
    return jax.numpy.result_type(*structure.dtypes)
