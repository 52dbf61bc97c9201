"""What every objective offers: particles, then a scalar loss and a report."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._contrast import StepInfo
from softcvi.objectives._particles import Particles
from softcvi.targets import AbstractTarget


class AbstractObjective(eqx.Module):
    """A loss whose gradient in the guide moves it towards the posterior.

    Attributes:
        num_particles: Particles drawn per step.
        needs_gradient: Whether the model's log density must be differentiable.
        trains_model: Whether the model's own parameters are trained too.
        uses_labels: Whether particles are ranked by labels, so that label ESS says
            whether there is anything to learn from.

    Example:
        >>> import equinox as eqx, softcvi
        >>> from softcvi.objectives import AbstractObjective, SoftCVI, contrast
        >>> class Plain(AbstractObjective):
        ...     num_particles: int = eqx.field(static=True, default=4)
        ...
        ...     def draw(self, key, guide, target, data=None):
        ...         return SoftCVI(self.num_particles).draw(key, guide, target, data)
        ...
        ...     def value(self, particles, starting=False):
        ...         p = particles
        ...         return contrast(p.log_p, p.log_q, p.log_proposal)
        >>> Plain().num_particles
        4
    """

    num_particles: eqx.AbstractVar[int]
    needs_gradient: ClassVar[bool] = False
    trains_model: ClassVar[bool] = False
    uses_labels: ClassVar[bool] = True

    @abstractmethod
    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
    ) -> Particles:
        """Draw and evaluate the particles of one step."""

    @abstractmethod
    def value(
        self, particles: Particles, starting: bool | Array = False
    ) -> tuple[Scalar, StepInfo]:
        """The loss of given particles; ``starting`` during the start-up phase."""

    def loss(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
        starting: bool | Array = False,
    ) -> tuple[Scalar, StepInfo]:
        """One Monte Carlo estimate of the loss, to be differentiated in ``guide``."""
        return self.value(self.draw(key, guide, target, data), starting)

    @property
    def num_evaluations(self) -> int:
        """Log densities that a step evaluates."""
        return self.num_particles

    def model_term(self, particles: Particles) -> Scalar:
        """What to add so that the gradient trains model parameters as the ELBO does."""
        return -jnp.mean(particles.log_p)


def check_num_particles(num_particles: int, minimum: int) -> None:
    """Refuse a number of particles that cannot work, and say why."""
    if isinstance(num_particles, bool) or not isinstance(num_particles, int):
        raise TypeError(f"num_particles: expected an integer; got {num_particles!r}.")
    if num_particles < minimum:
        why = (
            "a classifier needs at least two particles to tell apart"
            if minimum == 2
            else "at least one draw is needed"
        )
        raise ValueError(
            f"num_particles: must be at least {minimum} ({why}); got {num_particles}."
        )
