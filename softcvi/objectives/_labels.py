"""Soft labels and predictions, and what can be read off them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from softcvi.objectives._particles import without_bad

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
