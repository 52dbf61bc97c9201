"""Drawing particles and evaluating the densities that every objective needs.

The one place where the gradient of the proposal is stopped.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi._compile import computed_once
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractTarget


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


class Particles(eqx.Module):
    """K particles with the log densities of model, guide and proposal.

    With blocks there are several sets of K, and one more axis in front.

    Attributes:
        values: The particles, a pytree with a leading axis of length K.
        log_p: Unnormalised log posterior.
        log_q: Log density of the guide; carries the gradient.
        log_proposal: Log density of the proposal; a constant to the gradient.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> particles = softcvi.SoftCVI().draw(jax.random.key(0), guide, target)
        >>> particles.values.shape, particles.log_p.shape
        ((8, 2), (8,))
    """

    values: PyTree
    log_p: Float[Array, "*sets k"]
    log_q: Float[Array, "*sets k"]
    log_proposal: Float[Array, "*sets k"]


def draw_particles(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    target: AbstractTarget,
    proposal: AbstractProposal,
    num_particles: int,
    data: Any = None,
) -> Particles:
    """Draw K particles from the proposal (Algorithm 1, line 1) and evaluate them."""
    condition = data if target.amortised else None
    fixed = stopped(guide)
    keys = jax.random.split(key, num_particles)
    values = jax.vmap(lambda k: proposal.sample(k, fixed, condition))(keys)
    values = computed_once(key, jax.lax.stop_gradient(values), on_gpu=False)
    log_p = jax.vmap(lambda v: target.log_density(v, data))(values)
    log_q = jax.vmap(lambda v: guide.log_prob(v, condition))(values)
    log_p, log_q = computed_once(key, (log_p, log_q))
    log_proposal = proposal.log_prob(values, fixed, log_q, condition)
    return Particles(values, log_p, log_q, jax.lax.stop_gradient(log_proposal))


def draw_sets(
    key: PRNGKeyArray,
    noise: Float[Array, "sets k noise"],
    guide: AbstractGuide,
    target: AbstractTarget,
    data: Any = None,
) -> Particles:
    """Sets of K particles made from given noise, and evaluated."""
    condition = data if target.amortised else None
    fixed = stopped(guide)

    def over_sets(function):
        return jax.vmap(jax.vmap(function))

    values = over_sets(lambda z: fixed.from_noise(z, condition))(noise)
    values = computed_once(key, jax.lax.stop_gradient(values), on_gpu=False)
    log_p = over_sets(lambda v: target.log_density(v, data))(values)
    log_q = over_sets(lambda v: guide.log_prob(v, condition))(values)
    log_p, log_q = computed_once(key, (log_p, log_q))
    return Particles(values, log_p, log_q, jax.lax.stop_gradient(log_q))


def draw_reparameterised(
    key: PRNGKeyArray,
    guide: AbstractGuide,
    target: AbstractTarget,
    num_particles: int,
    data: Any = None,
    *,
    stick_the_landing: bool = False,
) -> Particles:
    """Draw from the guide with the gradient going through the draw, for the ELBO."""
    condition = data if target.amortised else None
    keys = jax.random.split(key, num_particles)
    if stick_the_landing:
        values = jax.vmap(lambda k: guide.sample(k, condition))(keys)
        scorer = stopped(guide)
        log_q = jax.vmap(lambda v: scorer.log_prob(v, condition))(values)
    else:
        values, log_q = jax.vmap(lambda k: guide.sample_and_log_prob(k, condition))(
            keys
        )
    values = computed_once(key, values, on_gpu=False)
    log_p = jax.vmap(lambda v: target.log_density(v, data))(values)
    return Particles(values, log_p, log_q, jax.lax.stop_gradient(log_q))


def stopped(guide: AbstractGuide) -> AbstractGuide:
    """The guide as a constant; its functions and settings pass through."""
    arrays, static = eqx.partition(guide, eqx.is_array)
    return eqx.combine(jax.lax.stop_gradient(arrays), static)


def count_bad(log_p: Float[Array, " k"]) -> Array:
    """How many log densities are NaN or plus infinity: errors of the model."""
    return jnp.sum(jnp.isnan(log_p) | (log_p == jnp.inf))


def count_infinite(log_p: Float[Array, " k"]) -> Array:
    """How many log densities are plus infinity, which no model's should be."""
    return jnp.sum(log_p == jnp.inf)


def without_bad(log_p: Float[Array, " k"]) -> Float[Array, " k"]:
    """NaN and plus infinity become minus infinity: no label for that particle."""
    return jnp.where(jnp.isnan(log_p) | (log_p == jnp.inf), -jnp.inf, log_p)
