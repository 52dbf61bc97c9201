"""SoftCVI, Algorithm 1 of Ward, Beaumont and Fasiolo (2025)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._base import AbstractObjective, check_num_particles
from softcvi.objectives._blocks import AbstractBlocks, NoBlocks
from softcvi.objectives._contrast import (
    AbstractNegative,
    StepInfo,
    TemperedProposal,
    contrast,
)
from softcvi.objectives._divergences import AbstractDivergence, ForwardKL
from softcvi.objectives._particles import AbstractProposal, GuideProposal, Particles
from softcvi.targets import AbstractTarget


class SoftCVI(AbstractObjective):
    """Contrastive variational inference with soft labels.

    Draw K particles from the proposal, label them softly by the unnormalised
    posterior over the negative, let the guide classify them, and step on the
    divergence. The gradient is zero for *every* set of particles where the guide
    equals the posterior. Neither a gradient of the model nor a reparameterised draw
    is needed.

    Args:
        num_particles: K, at least 2.
        negative: The negative distribution, ``TemperedProposal(0.75)`` by default.
        proposal: Where particles come from, the guide itself by default.
        divergence: Between labels and predictions, forward KL by default.
        temperature: Divides the logits of labels and predictions alike. The optimum
            stays where it is: logits that agree up to a constant still do.
        label_smoothing: Share s of uniform labels mixed into the soft ones. This
            *moves* the optimum: at the optimum the predictions equal
            ``(1 - s) y_k + s / K``, so the guide's density ratio to the negative is
            pulled towards a constant. With ``TemperedProposal(1)`` that leaves the
            guide where it was at ``q = p`` (labels are uniform there already); with
            alpha below 1 it flattens log q: pairwise log ratios of predictions shrink
            by about ``s`` for labels near uniform, i.e. q is too wide by a factor of
            about ``1 / (1 - s (1 - alpha))`` in variance to first order.
        blocks: What the particles of a set differ in. ``NoBlocks()``, the default, has
            one set of whole particles; in hundreds of dimensions ``RandomBlocks`` or
            ``AdaptiveBlocks`` keep the labels from degenerating.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> loss, info = softcvi.SoftCVI().loss(jax.random.key(0), guide, target)
        >>> abs(float(info.excess)) < 1e-6
        True
    """

    num_particles: int = eqx.field(static=True, default=8)
    negative: AbstractNegative = TemperedProposal(0.75)
    proposal: AbstractProposal = GuideProposal()
    divergence: AbstractDivergence = ForwardKL()
    temperature: float = 1.0
    label_smoothing: float = eqx.field(static=True, default=0.0)
    blocks: AbstractBlocks = NoBlocks()

    def __check_init__(self):
        check_num_particles(self.num_particles, minimum=2)
        if self.blocks.shares_noise and not self.proposal.is_guide:
            raise ValueError(
                "blocks: particles that share noise are draws of the guide; use "
                "proposal=GuideProposal(), or blocks=NoBlocks()."
            )
        if not isinstance(self.temperature, jax.core.Tracer) and not (
            0 < self.temperature < jnp.inf
        ):
            raise ValueError(
                f"temperature: must be positive and finite; got {self.temperature}."
            )
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"label_smoothing: must lie in [0, 1); got {self.label_smoothing}."
            )

    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
    ) -> Particles:
        """Line 1: sample particles from the proposal."""
        return self.blocks.draw(
            key, guide, target, self.proposal, self.num_particles, data
        )

    @property
    def num_evaluations(self) -> int:
        """Log densities that a step evaluates."""
        return self.blocks.num_evaluations(self.num_particles)

    def value(
        self, particles: Particles, starting: bool | Array = False
    ) -> tuple[Scalar, StepInfo]:
        """Lines 2 and 3: soft labels, and the divergence of the predictions."""
        return self.blocks.value(self._value_of_set, particles, starting)

    def _value_of_set(
        self, particles: Particles, starting: bool | Array
    ) -> tuple[Scalar, StepInfo]:
        log_negative = self.negative.log_prob(particles)
        if starting is not False:
            wide = self.negative.log_prob_starting(particles)
            log_negative = jnp.where(starting, wide, log_negative)
        return contrast(
            particles.log_p,
            particles.log_q,
            log_negative,
            divergence=self.divergence,
            temperature=self.temperature,
            label_smoothing=self.label_smoothing,
        )
