"""Self-normalised importance sampling of the forward KL (Jerfel et al., 2021)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._base import AbstractObjective, check_num_particles
from softcvi.objectives._contrast import StepInfo, contrast, log_soft_labels
from softcvi.objectives._particles import (
    AbstractProposal,
    GuideProposal,
    Particles,
    draw_particles,
)
from softcvi.targets import AbstractTarget


class SNISForwardKL(AbstractObjective):
    """SNIS-fKL (eq. snisfkl objective), and its low-variance form.

    The plain form keeps gradient noise even at the posterior. The low-variance form
    adds the control variate that SoftCVI with alpha = 1 has built in: the two have
    equal gradients on the same particles.

    Args:
        num_particles: K, at least 2.
        low_variance: Subtract the mean score of the particles.
        proposal: Where particles come from, the guide itself by default.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> loss, info = softcvi.SNISForwardKL().loss(jax.random.key(0), guide, target)
        >>> round(float(info.label_ess), 3)
        8.0
    """

    num_particles: int = eqx.field(static=True, default=8)
    low_variance: bool = eqx.field(static=True, default=False)
    proposal: AbstractProposal = GuideProposal()

    def __check_init__(self):
        check_num_particles(self.num_particles, minimum=2)
        if self.low_variance and not self.proposal.is_guide:
            raise ValueError(
                "low_variance: the mean score of the particles is zero only if they "
                "come from the guide; with another proposal the gradient is biased. "
                "Use proposal=GuideProposal(), or low_variance=False."
            )

    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
    ) -> Particles:
        return draw_particles(
            key, guide, target, self.proposal, self.num_particles, data
        )

    def value(
        self, particles: Particles, starting: bool | Array = False
    ) -> tuple[Scalar, StepInfo]:
        _, info = contrast(particles.log_p, particles.log_q, particles.log_proposal)
        log_p = jax.lax.stop_gradient(jnp.where(info.usable, particles.log_p, 0.0))
        weights = jnp.exp(log_soft_labels(log_p, particles.log_proposal))
        if self.low_variance:
            weights = weights - 1.0 / self.num_particles
        return -jnp.sum(weights * particles.log_q), info
