"""Negative distributions: what the labels and predictions are ratios to."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

if TYPE_CHECKING:
    from softcvi.objectives._particles import Particles

_START_GRID = 9
_START_ESS = 0.3


class AbstractNegative(eqx.Module):
    """The negative distribution p^- of the paper, known up to a constant.

    It is never sampled and never differentiated.

    Example:
        >>> import softcvi
        >>> class Blend(softcvi.objectives.AbstractNegative):
        ...     def log_prob(self, particles):
        ...         return 0.5 * (particles.log_proposal + particles.log_p)
        >>> softcvi.SoftCVI(negative=Blend()).num_particles
        8
    """

    @abstractmethod
    def log_prob(self, particles: "Particles") -> Float[Array, " k"]:
        """Unnormalised log density of the negative at the particles."""

    def log_prob_starting(self, particles: "Particles") -> Float[Array, " k"]:
        """The negative to use while the guide is still far from the posterior."""
        return self.log_prob(particles)


def _check_alpha(alpha: float, allow_outside: bool) -> None:
    if isinstance(alpha, jax.core.Tracer):
        return
    if not math.isfinite(alpha):
        raise ValueError(f"alpha: must be finite; got {alpha}.")
    if not 0 <= alpha <= 1 and not allow_outside:
        raise ValueError(
            f"alpha: must lie in [0, 1]; got {alpha}. Outside, labels and predictions "
            "degenerate quickly; pass allow_outside=True if that is meant."
        )


class TemperedProposal(AbstractNegative):
    """``p^- = pi^alpha``, the paper's main choice (section on the negative).

    ``alpha = 1`` is the low-variance form of SNIS-fKL; lower values cover mass more
    strongly, and 0 is the flat negative.

    Args:
        alpha: Tempering exponent in [0, 1].
        allow_outside: Accept an alpha outside [0, 1].

    Example:
        >>> import softcvi
        >>> softcvi.TemperedProposal(0.75).alpha
        0.75
    """

    alpha: float | Array = 0.75
    allow_outside: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        _check_alpha(self.alpha, self.allow_outside)

    def log_prob(self, particles: "Particles") -> Float[Array, " k"]:
        return self.alpha * particles.log_proposal

    def log_prob_starting(self, particles: "Particles") -> Float[Array, " k"]:
        """The smallest exponent from alpha to 1 that keeps label ESS above 0.3 K.

        Far from the posterior a single label takes all the weight; exponents nearer
        to one spread the labels. A rule for the start only: over a whole run a fixed
        alpha is better (docs, how to choose).
        """
        grid = self.alpha + (1.0 - self.alpha) * jnp.linspace(0.0, 1.0, _START_GRID)
        logits = particles.log_p - grid[:, None] * particles.log_proposal
        labels = jax.nn.softmax(jnp.where(jnp.isnan(logits), -jnp.inf, logits))
        enough = 1.0 / jnp.sum(labels**2, axis=1) > _START_ESS * logits.shape[1]
        alpha = jnp.where(jnp.any(enough), grid[jnp.argmax(enough)], 1.0)
        return alpha * particles.log_proposal


class TemperedPosterior(AbstractNegative):
    """``p^- = p(theta, x)^alpha`` (appendix on alternative negatives).

    Favours overconfident posteriors; here for comparison.

    Args:
        alpha: Tempering exponent in [0, 1].
        allow_outside: Accept an alpha outside [0, 1].

    Example:
        >>> import softcvi
        >>> softcvi.SoftCVI(negative=softcvi.TemperedPosterior(0.75)).negative.alpha
        0.75
    """

    alpha: float | Array = 0.75
    allow_outside: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        _check_alpha(self.alpha, self.allow_outside)

    def log_prob(self, particles: "Particles") -> Float[Array, " k"]:
        return self.alpha * particles.log_p


class FlatNegative(AbstractNegative):
    """The improper flat negative: the limit alpha = 0 of both tempered forms.

    Example:
        >>> import softcvi
        >>> objective = softcvi.SoftCVI(negative=softcvi.FlatNegative())
    """

    def log_prob(self, particles: "Particles") -> Float[Array, " k"]:
        return jnp.zeros_like(particles.log_q)


class CustomNegative(AbstractNegative):
    """A negative that the user gives as a log density of one particle.

    Args:
        function: Unnormalised log density of one particle in the fitting space.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> negative = softcvi.CustomNegative(lambda theta: -jnp.sum(theta**2) / 20)
    """

    function: Callable[[PyTree], Array]

    def log_prob(self, particles: "Particles") -> Float[Array, " k"]:
        return jax.vmap(self.function)(particles.values)
