"""Proposals: where the particles of a step come from."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi.guides import AbstractGuide


class AbstractProposal(eqx.Module):
    """The distribution pi of Algorithm 1, line 1.

    Attributes:
        is_guide: Whether the particles are draws of the guide itself.

    Example:
        >>> import softcvi
        >>> class Same(softcvi.objectives.AbstractProposal):
        ...     def sample(self, key, guide, condition=None):
        ...         return guide.sample(key, condition)
        ...
        ...     def log_prob(self, values, guide, log_q, condition=None):
        ...         return log_q
        >>> softcvi.SoftCVI(proposal=Same()).num_particles
        8
    """

    is_guide: ClassVar[bool] = False

    @abstractmethod
    def sample(
        self, key: PRNGKeyArray, guide: AbstractGuide, condition: PyTree = None
    ) -> PyTree:
        """Draw one particle; ``guide`` is the current guide, without gradient."""

    @abstractmethod
    def log_prob(
        self,
        values: PyTree,
        guide: AbstractGuide,
        log_q: Float[Array, " k"],
        condition: PyTree = None,
    ) -> Float[Array, " k"]:
        """Log densities of K particles; ``log_q`` are the guide's, already known."""


class GuideProposal(AbstractProposal):
    """The guide itself, the paper's choice: its log density is already there.

    Example:
        >>> import softcvi
        >>> softcvi.SoftCVI(proposal=softcvi.objectives.GuideProposal()).num_particles
        8
    """

    is_guide: ClassVar[bool] = True

    def sample(self, key, guide, condition=None):
        return guide.sample(key, condition)

    def log_prob(self, values, guide, log_q, condition=None):
        return log_q


class FixedProposal(AbstractProposal):
    """A fixed distribution, for example the prior or an earlier fit.

    It must cover the posterior: where it puts no mass, nothing is learnt.

    Args:
        distribution: A guide that stays as it is.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> wide = softcvi.guides.mean_field(jnp.zeros(2), scale=3.0)
        >>> objective = softcvi.SoftCVI(
        ...     proposal=softcvi.objectives.FixedProposal(wide)
        ... )
    """

    distribution: AbstractGuide

    def sample(self, key, guide, condition=None):
        return self.distribution.sample(key, condition)

    def log_prob(self, values, guide, log_q, condition=None):
        return jax.vmap(lambda v: self.distribution.log_prob(v, condition))(values)


class DefensiveProposal(AbstractProposal):
    """A mixture of the guide and a fixed distribution.

    The share from elsewhere keeps finding mass that the guide has lost.

    Args:
        distribution: The fixed part, a guide that stays as it is.
        share: Its share of the particles, between 0 and 1.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> wide = softcvi.guides.mean_field(jnp.zeros(2), scale=3.0)
        >>> softcvi.objectives.DefensiveProposal(wide, share=0.2).share
        0.2
    """

    distribution: AbstractGuide
    share: float = 0.1

    def __check_init__(self):
        if not 0 < self.share < 1:
            raise ValueError(
                f"share: must lie strictly between 0 and 1; got {self.share}. For 0 "
                "use GuideProposal, for 1 FixedProposal."
            )

    def sample(self, key, guide, condition=None):
        pick_key, guide_key, other_key = jax.random.split(key, 3)
        from_other = jax.random.uniform(pick_key) < self.share
        own = guide.sample(guide_key, condition)
        other = self.distribution.sample(other_key, condition)
        return jax.tree_util.tree_map(
            lambda a, b: jnp.where(from_other, a, b), other, own
        )

    def log_prob(self, values, guide, log_q, condition=None):
        other = jax.vmap(lambda v: self.distribution.log_prob(v, condition))(values)
        return jnp.logaddexp(
            jnp.log1p(-self.share) + log_q, jnp.log(self.share) + other
        )
