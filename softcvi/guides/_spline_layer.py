"""A spline on a bounded interval, moved and scaled: the element of unbounded flows.

A spline alone cannot leave its interval, so that a guide of splines would cut off every
tail that reaches beyond it without anybody noticing: no particle ever gets there. So
each spline of an unbounded flow is moved and scaled by its network, too. That also
makes Neal's funnel, and with it hierarchical models, a matter of one layer.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from softcvi.guides._spline import (
    num_spline_parameters,
    spline_forward,
    spline_inverse,
)

# Largest absolute log scale of one layer.
_MAX_LOG_SCALE = 6.0


def num_layer_parameters(knots: int) -> int:
    """Unconstrained numbers that describe one moved and scaled spline."""
    return num_spline_parameters(knots) + 2


def compressed(x: Array) -> Array:
    """Values as a network is given them: large ones grow like a logarithm only."""
    return jnp.arcsinh(x)


def to_base(
    raw: Float[Array, "*shape p"], x: Float[Array, "*shape"], interval: tuple
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Each value through its affine map, then its spline; also the log derivative.

    All-zero ``raw`` is the identity.
    """
    spline, shift, log_scale = _parts(raw)
    y, log_derivative = spline_forward(
        spline, (x - shift) * jnp.exp(-log_scale), *interval
    )
    return y, log_derivative - log_scale


def from_base(
    raw: Float[Array, "*shape p"], y: Float[Array, "*shape"], interval: tuple
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Undo ``to_base``; also the log derivative of ``to_base`` there."""
    spline, shift, log_scale = _parts(raw)
    x, log_derivative = spline_inverse(spline, y, *interval)
    return shift + jnp.exp(log_scale) * x, log_derivative - log_scale


def _parts(raw: Float[Array, "*shape p"]) -> tuple[Array, Array, Array]:
    """Parameters of splines, shifts and bounded log scales."""
    sizes = (raw.shape[-1] - 2, 1, 1)
    spline, shift, log_scale = jax.lax.split(raw, sizes, axis=raw.ndim - 1)
    log_scale = _MAX_LOG_SCALE * jnp.tanh(log_scale[..., 0] / _MAX_LOG_SCALE)
    return spline, shift[..., 0], log_scale
