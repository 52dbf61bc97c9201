"""Monotone rational quadratic splines, elementwise and without gathers.

The bin is picked by a mask and sums instead of an index, so that the gradient is a
product and not a scatter: that fuses on every backend.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_MIN_WIDTH = 1e-3
_MIN_DERIVATIVE = 1e-3
# What softplus maps to a derivative of one, so that all-zero parameters are the identity.
_UNIT = math.log(math.expm1(1.0 - _MIN_DERIVATIVE))


def num_spline_parameters(knots: int) -> int:
    """Unconstrained numbers that describe one spline with this many inner knots."""
    return 3 * (knots + 1) + 1


def spline_forward(
    raw: Float[Array, "*shape p"], x: Float[Array, "*shape"], low: float, high: float
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Map ``x`` through the spline; also the log derivative.

    All-zero ``raw`` is the identity, and so is everything outside (low, high).
    """
    inside = (x >= low) & (x <= high)
    clipped = jnp.clip(x, low, high)
    widths, heights, derivatives = _unpack(raw, low, high)
    left, bottom = _left_edges(widths, low), _left_edges(heights, low)
    x0, w, y0, h, d0, d1 = _select(
        clipped, left, left, widths, bottom, heights, derivatives
    )
    slope = h / w
    xi = (clipped - x0) / w
    mixed = xi * (1 - xi)
    den = slope + (d0 + d1 - 2 * slope) * mixed
    y = y0 + h * (slope * xi**2 + d0 * mixed) / den
    log_derivative = _log_derivative(slope, xi, mixed, den, d0, d1)
    return jnp.where(inside, y, x), jnp.where(inside, log_derivative, 0.0)


def spline_inverse(
    raw: Float[Array, "*shape p"], y: Float[Array, "*shape"], low: float, high: float
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Undo ``spline_forward``; also the log derivative of the *forward* map there."""
    inside = (y >= low) & (y <= high)
    clipped = jnp.clip(y, low, high)
    widths, heights, derivatives = _unpack(raw, low, high)
    left, bottom = _left_edges(widths, low), _left_edges(heights, low)
    x0, w, y0, h, d0, d1 = _select(
        clipped, bottom, left, widths, bottom, heights, derivatives
    )
    slope = h / w
    bend = (clipped - y0) * (d0 + d1 - 2 * slope)
    a = h * (slope - d0) + bend
    b = h * d0 - bend
    c = -slope * (clipped - y0)
    root = jnp.sqrt(jnp.clip(b**2 - 4 * a * c, 0.0, None))
    xi = jnp.clip(2 * c / (-b - root), 0.0, 1.0)
    mixed = xi * (1 - xi)
    den = slope + (d0 + d1 - 2 * slope) * mixed
    log_derivative = _log_derivative(slope, xi, mixed, den, d0, d1)
    x = x0 + w * xi
    return jnp.where(inside, x, y), jnp.where(inside, log_derivative, 0.0)


def _log_derivative(slope, xi, mixed, den, d0, d1):
    num = d1 * xi**2 + 2 * slope * mixed + d0 * (1 - xi) ** 2
    return jnp.log(num) + 2 * jnp.log(slope / den)


def _unpack(raw: Float[Array, "*shape p"], low: float, high: float):
    bins = (raw.shape[-1] - 1) // 3
    span, free = high - low, 1.0 - _MIN_WIDTH * bins
    widths = span * (_MIN_WIDTH + free * jax.nn.softmax(raw[..., :bins]))
    heights = span * (_MIN_WIDTH + free * jax.nn.softmax(raw[..., bins : 2 * bins]))
    derivatives = _MIN_DERIVATIVE + jax.nn.softplus(raw[..., 2 * bins :] + _UNIT)
    return widths, heights, derivatives


def _left_edges(sizes: Float[Array, "*shape bins"], low: float):
    bins = sizes.shape[-1]
    before = jnp.triu(jnp.ones((bins, bins), sizes.dtype), 1)
    # A product instead of a cumulative sum (fewer kernels); HIGHEST because reduced
    # precision would move the knots.
    return low + jnp.matmul(sizes, before, precision=jax.lax.Precision.HIGHEST)


def _select(value, edges, left, widths, bottom, heights, derivatives):
    above = value[..., None] >= edges
    is_last = jnp.ones_like(above[..., :1])
    inside_bin = above & ~jnp.concatenate([above[..., 1:], ~is_last], axis=-1)
    # Rounding can leave a value a hair below the first edge: that is the first bin.
    first = inside_bin[..., :1] | ~above[..., :1]
    mask = jnp.concatenate([first, inside_bin[..., 1:]], axis=-1).astype(value.dtype)
    picked = (
        left,
        widths,
        bottom,
        heights,
        derivatives[..., :-1],
        derivatives[..., 1:],
    )
    return tuple(jnp.sum(mask * quantity, axis=-1) for quantity in picked)
