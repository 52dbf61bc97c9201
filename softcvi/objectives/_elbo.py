"""The evidence lower bound, with and without sticking the landing."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, Scalar

from softcvi.guides import AbstractGuide
from softcvi.objectives._base import AbstractObjective, check_num_particles
from softcvi.objectives._contrast import StepInfo, contrast
from softcvi.objectives._particles import Particles, draw_reparameterised
from softcvi.targets import AbstractTarget


class ELBO(AbstractObjective):
    """Negative evidence lower bound by reparameterised draws (eq. elbo).

    Needs a differentiable model and a guide whose draw carries the gradient: discrete
    sites and the weights of a mixture are not trained by it.

    Args:
        num_particles: Draws per step.
        stick_the_landing: Drop the score term of the path gradient (Roeder et al.),
            which lowers the noise near the optimum.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> guide = softcvi.guides.mean_field(target)
        >>> loss, info = softcvi.ELBO().loss(jax.random.key(0), guide, target)
        >>> round(float(loss), 4)
        -1.8379
    """

    num_particles: int = eqx.field(static=True, default=8)
    stick_the_landing: bool = eqx.field(static=True, default=False)
    needs_gradient: ClassVar[bool] = True
    uses_labels: ClassVar[bool] = False

    def __check_init__(self):
        check_num_particles(self.num_particles, minimum=1)

    def draw(
        self,
        key: PRNGKeyArray,
        guide: AbstractGuide,
        target: AbstractTarget,
        data: Any = None,
    ) -> Particles:
        return draw_reparameterised(
            key,
            guide,
            target,
            self.num_particles,
            data,
            stick_the_landing=self.stick_the_landing,
        )

    def value(
        self, particles: Particles, starting: bool | Array = False
    ) -> tuple[Scalar, StepInfo]:
        _, info = contrast(particles.log_p, particles.log_q, particles.log_proposal)
        return jnp.mean(particles.log_q - particles.log_p), info

    def model_term(self, particles: Particles) -> Scalar:
        """Nothing to add: the bound already trains the model."""
        return jnp.zeros(())
