"""Training of model parameters beside the guide (appendix on autoencoders)."""

from typing import Any, ClassVar

from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._base import AbstractObjective
from softcvi.objectives._contrast import StepInfo
from softcvi.objectives._particles import Particles
from softcvi.targets import AbstractTarget


def with_model_parameters(
    objective: AbstractObjective, target: AbstractTarget
) -> AbstractObjective:
    """The objective, with the model term where the target declares parameters.

    Parameters such as ``numpyro.param`` are meant to be trained; without the term they
    would stay where they begin.

    Args:
        objective: What trains the guide.
        target: The target.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * x**2, jnp.zeros(()))
        >>> objective = softcvi.SoftCVI()
        >>> softcvi.objectives.with_model_parameters(objective, target) is objective
        True
    """
    if objective.trains_model or not target.model_parameters():
        return objective
    return WithModelTerm(objective)


class WithModelTerm(AbstractObjective):
    """An objective plus ``-mean log p_psi(theta_k, x)`` on the same particles.

    The parameters psi are the arrays of the target's ``log_prob`` (a callable pytree).
    The added term has no gradient in the guide, and the classifier none in the model.

    Args:
        objective: The objective that trains the guide.

    Example:
        >>> import softcvi
        >>> softcvi.WithModelTerm(softcvi.SoftCVI(num_particles=4)).num_particles
        4
    """

    objective: AbstractObjective
    trains_model: ClassVar[bool] = True

    @property
    def num_particles(self) -> int:
        """Particles drawn per step."""
        return self.objective.num_particles

    @property
    def num_evaluations(self) -> int:
        """Log densities that a step evaluates."""
        return self.objective.num_evaluations

    @property
    def needs_gradient(self) -> bool:  # type: ignore[override]
        """As the wrapped objective."""
        return self.objective.needs_gradient

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        """As the wrapped objective."""
        return self.objective.uses_labels

    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
    ) -> Particles:
        return self.objective.draw(key, guide, target, data)

    def value(
        self, particles: Particles, starting: bool | Array = False
    ) -> tuple[Scalar, StepInfo]:
        loss, info = self.objective.value(particles, starting)
        return loss + self.objective.model_term(particles), info
