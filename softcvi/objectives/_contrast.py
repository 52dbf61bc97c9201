"""The contrast of SoftCVI: negatives, labels, and from log densities to a scalar loss.

Labels and predictions are ratios to the negative. The NumPyro loss uses it, too.
"""

import math
from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from softcvi.objectives._divergences import AbstractDivergence, ForwardKL
from softcvi.objectives._particles import (
    Particles,
    count_bad,
    count_infinite,
    without_bad,
)

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
    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
        """Unnormalised log density of the negative at the particles."""

    def log_prob_starting(self, particles: Particles) -> Float[Array, " k"]:
        """The negative to use while the guide is still far from the posterior."""
        return self.log_prob(particles)


class _AbstractTempered(AbstractNegative):
    """A negative that is a density to the power of alpha."""

    alpha: float | Array = 0.75
    allow_outside: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if isinstance(self.alpha, jax.core.Tracer):
            return
        if not math.isfinite(self.alpha):
            raise ValueError(f"alpha: must be finite; got {self.alpha}.")
        if not 0 <= self.alpha <= 1 and not self.allow_outside:
            raise ValueError(
                f"alpha: must lie in [0, 1]; got {self.alpha}. Outside, labels and "
                "predictions degenerate quickly; pass allow_outside=True if that is "
                "meant."
            )


class TemperedProposal(_AbstractTempered):
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

    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
        return self.alpha * particles.log_proposal

    def log_prob_starting(self, particles: Particles) -> Float[Array, " k"]:
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


class TemperedPosterior(_AbstractTempered):
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

    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
        return self.alpha * particles.log_p


class FlatNegative(AbstractNegative):
    """The improper flat negative: the limit alpha = 0 of both tempered forms.

    Example:
        >>> import softcvi
        >>> objective = softcvi.SoftCVI(negative=softcvi.FlatNegative())
    """

    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
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

    def log_prob(self, particles: Particles) -> Float[Array, " k"]:
        return jax.vmap(self.function)(particles.values)


_OUT_OF_PLAY = 1e4


def log_soft_labels(
    log_p: Float[Array, " k"],
    log_negative: Float[Array, " k"],
    temperature: float | Scalar = 1.0,
) -> Float[Array, " k"]:
    """Log soft labels, Algorithm 1, line 2; bad densities get none."""
    z = without_bad(without_bad(log_p) - log_negative)
    return jax.nn.log_softmax(z / temperature)


def log_predicted(
    log_q: Float[Array, " k"],
    log_negative: Float[Array, " k"],
    temperature: float | Scalar = 1.0,
) -> Float[Array, " k"]:
    """Log predictions of the classifier that the guide parameterises.

    A particle at which the negative is zero or unknown gets no label: its
    logit is far below the others, finite so that every divergence stays finite.
    """
    in_play = jnp.isfinite(log_negative)
    logits = jnp.where(in_play, log_q - log_negative, -jnp.inf) / temperature
    top = jax.lax.stop_gradient(jnp.max(logits))
    return jax.nn.log_softmax(jnp.where(in_play, logits, top - _OUT_OF_PLAY))


def smoothed(log_labels: Float[Array, " k"], amount: float) -> Float[Array, " k"]:
    """Labels mixed with uniform ones."""
    uniform = 1.0 / log_labels.shape[0]
    return jnp.log((1 - amount) * jnp.exp(log_labels) + amount * uniform)


def excess(
    log_labels: Float[Array, " k"], log_predictions: Float[Array, " k"]
) -> Scalar:
    """Cross-entropy minus the labels' entropy: zero where the guide is right."""
    labels = jnp.exp(log_labels)
    gap = jnp.where(labels > 0, log_labels - log_predictions, 0.0)
    return jnp.sum(labels * gap)


def label_ess(log_labels: Float[Array, " k"]) -> Scalar:
    """Effective number of labels, between 1 (one takes all) and K."""
    return 1.0 / jnp.sum(jnp.square(jnp.exp(log_labels)))


class StepInfo(eqx.Module):
    """What a reader wants to know of one step.

    Attributes:
        excess: KL between labels and predictions; zero where the guide is right.
        label_ess: Effective number of labels, between 1 and K.
        elbo: Estimate of the evidence lower bound.
        num_bad: Log densities that were NaN or plus infinity.
        num_infinite: Those of them that were plus infinity.
        usable: False if no label was finite: then the step is skipped.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.objectives import contrast
        >>> loss, info = contrast(jnp.zeros(4), jnp.zeros(4), jnp.zeros(4))
        >>> round(float(info.label_ess), 3), bool(info.usable)
        (4.0, True)
    """

    excess: Scalar
    label_ess: Scalar
    elbo: Scalar
    num_bad: Scalar
    num_infinite: Scalar
    usable: Scalar


def contrast(
    log_p: Float[Array, " k"],
    log_q: Float[Array, " k"],
    log_negative: Float[Array, " k"],
    *,
    divergence: AbstractDivergence | None = None,
    temperature: float | Scalar = 1.0,
    label_smoothing: float = 0.0,
) -> tuple[Scalar, StepInfo]:
    """Divergence between soft labels and predictions (eq. cross-entropy loss).

    Args:
        log_p: Unnormalised log posterior of K particles; treated as constant.
        log_q: Log density of the guide, which carries the gradient.
        log_negative: Log density of the negative; treated as constant.
        divergence: Forward KL by default.
        temperature: Divides the logits of labels and predictions alike.
        label_smoothing: Share of uniform labels mixed in.

    Returns:
        The loss, and what to report of the step.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.objectives import contrast
        >>> log_q = jnp.array([-1.0, -2.0, -0.5])
        >>> loss, info = contrast(log_q + 3.0, log_q, 0.75 * log_q)
        >>> abs(float(info.excess)) < 1e-6
        True
    """
    divergence = ForwardKL() if divergence is None else divergence
    num_bad, num_infinite = count_bad(log_p), count_infinite(log_p)
    log_p, log_negative = jax.lax.stop_gradient((without_bad(log_p), log_negative))
    usable = jnp.any(jnp.isfinite(log_p))
    # With no finite label there is nothing to learn; zeros keep the arithmetic finite.
    log_p = jnp.where(usable, log_p, 0.0)
    log_labels = log_soft_labels(log_p, log_negative, temperature)
    log_predictions = log_predicted(log_q, log_negative, temperature)
    report = jax.lax.stop_gradient(
        StepInfo(
            excess=excess(log_labels, log_predictions),
            label_ess=label_ess(log_labels),
            elbo=_elbo(log_p, log_q),
            num_bad=num_bad,
            num_infinite=num_infinite,
            usable=usable,
        )
    )
    if label_smoothing:
        log_labels = smoothed(log_labels, label_smoothing)
    return divergence(log_labels, log_predictions), report


def _elbo(log_p: Float[Array, " k"], log_q: Float[Array, " k"]) -> Scalar:
    """Mean log ratio over the particles whose model density is finite."""
    finite = jnp.isfinite(log_p) & jnp.isfinite(log_q)
    ratio = jnp.where(finite, log_p - log_q, 0.0)
    return jnp.sum(ratio) / jnp.maximum(jnp.sum(finite), 1)
