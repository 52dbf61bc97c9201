"""Log densities in, scalar loss out; SoftCVI and the NumPyro loss use it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from softcvi.objectives._divergences import AbstractDivergence, ForwardKL
from softcvi.objectives._labels import (
    excess,
    label_ess,
    log_predicted,
    log_soft_labels,
    smoothed,
)
from softcvi.objectives._particles import count_bad, without_bad


class StepInfo(eqx.Module):
    """What a reader wants to know of one step.

    Attributes:
        excess: KL between labels and predictions; zero where the guide is right.
        label_ess: Effective number of labels, between 1 and K.
        elbo: Estimate of the evidence lower bound.
        num_bad: Log densities that were NaN or plus infinity.
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
    num_bad = count_bad(log_p)
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
