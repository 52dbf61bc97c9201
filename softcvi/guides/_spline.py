"""Monotone rational quadratic splines, elementwise and with few operations.

The bin is picked by a mask and one sum instead of an index, so that the gradient is a
product and not a scatter; both sets of bin sizes are normalised and accumulated by one
matrix product. A flow's step is bound by the number of operations, not by arithmetic.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from softcvi._compile import traced_once

_MIN_WIDTH = 1e-3
_MIN_DERIVATIVE = 1e-3
# What softplus maps to a derivative of one: all-zero parameters are the identity.
_UNIT = math.log(math.expm1(1.0 - _MIN_DERIVATIVE))
# Bin sizes are exponentials; beyond this they would overflow in single precision.
_MAX_EXPONENT = 40.0


class _Bin(NamedTuple):
    """The bin that a value falls into: its corner, sizes and end derivatives."""

    x0: Array
    width: Array
    y0: Array
    height: Array
    d0: Array
    d1: Array


def num_spline_parameters(knots: int) -> int:
    """Unconstrained numbers that describe one spline with this many inner knots."""
    return 3 * (knots + 1) + 1


@traced_once
def spline_forward(
    raw: Float[Array, "*shape p"], x: Float[Array, "*shape"], low: float, high: float
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Map ``x`` through the spline; also the log derivative.

    All-zero ``raw`` is the identity, and so is everything outside (low, high).
    """
    inside = (x >= low) & (x <= high)
    clipped = jnp.clip(x, low, high)
    bin_ = _find_bin(raw, clipped, low, high, axis=0)
    slope = bin_.height / bin_.width
    xi = (clipped - bin_.x0) / bin_.width
    mixed = xi * (1 - xi)
    den = slope + (bin_.d0 + bin_.d1 - 2 * slope) * mixed
    y = bin_.y0 + bin_.height * (slope * xi**2 + bin_.d0 * mixed) / den
    log_derivative = _log_derivative(bin_, slope, xi, mixed, den)
    return jnp.where(inside, y, x), jnp.where(inside, log_derivative, 0.0)


@traced_once
def spline_inverse(
    raw: Float[Array, "*shape p"], y: Float[Array, "*shape"], low: float, high: float
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Undo ``spline_forward``; also the log derivative of the *forward* map there."""
    inside = (y >= low) & (y <= high)
    clipped = jnp.clip(y, low, high)
    bin_ = _find_bin(raw, clipped, low, high, axis=1)
    slope = bin_.height / bin_.width
    bend = (clipped - bin_.y0) * (bin_.d0 + bin_.d1 - 2 * slope)
    a = bin_.height * (slope - bin_.d0) + bend
    b = bin_.height * bin_.d0 - bend
    c = -slope * (clipped - bin_.y0)
    root = jnp.sqrt(jnp.clip(b**2 - 4 * a * c, 0.0, None))
    xi = jnp.clip(2 * c / (-b - root), 0.0, 1.0)
    mixed = xi * (1 - xi)
    den = slope + (bin_.d0 + bin_.d1 - 2 * slope) * mixed
    log_derivative = _log_derivative(bin_, slope, xi, mixed, den)
    x = bin_.x0 + bin_.width * xi
    return jnp.where(inside, x, y), jnp.where(inside, log_derivative, 0.0)


def _log_derivative(bin_: _Bin, slope, xi, mixed, den):
    num = bin_.d1 * xi**2 + 2 * slope * mixed + bin_.d0 * (1 - xi) ** 2
    return jnp.log(num) + 2 * jnp.log(slope / den)


def _find_bin(
    raw: Float[Array, "*shape p"],
    value: Float[Array, "*shape"],
    low: float,
    high: float,
    axis: int,
) -> _Bin:
    """The bin of a value along x (axis 0) or y (axis 1)."""
    # ``split`` and not indexing throughout: the gradient of a split is one
    # concatenation, that of n slices is n padded copies and their sum.
    bins = (raw.shape[-1] - 1) // 3
    sizes, slopes = jax.lax.split(raw, (2 * bins, bins + 1), axis=raw.ndim - 1)
    sizes = sizes.reshape(*raw.shape[:-1], 2, bins)
    sizes = jnp.exp(jnp.clip(sizes, -_MAX_EXPONENT, _MAX_EXPONENT))
    # Running totals by a product instead of a cumulative sum (one operation); HIGHEST
    # because reduced precision would move the knots.
    running = jnp.matmul(
        sizes, _running_total(bins, sizes.dtype), precision=jax.lax.Precision.HIGHEST
    )
    before, total = jax.lax.split(running, (bins, 1), axis=running.ndim - 1)
    scale = (high - low) * (1.0 - _MIN_WIDTH * bins) / total
    floor = (high - low) * _MIN_WIDTH
    number = jnp.arange(bins, dtype=raw.dtype)

    fixed = jax.lax.stop_gradient((before * scale)[..., axis, 1:])
    above = (value[..., None] - low >= fixed + floor * number[1:]).astype(raw.dtype)
    first, last = jnp.ones_like(above[..., :1]), jnp.zeros_like(above[..., :1])
    mask = jnp.concatenate([first, above], -1) - jnp.concatenate([above, last], -1)
    # Everything is picked first and transformed after: one bin, not all of them.
    rows = [before, sizes, slopes[..., None, :-1], slopes[..., None, 1:]]
    picked = jnp.sum(mask[..., None, :] * jnp.concatenate(rows, axis=-2), axis=-1)
    corner, size, ends = jax.lax.split(picked, (2, 2, 2), axis=picked.ndim - 1)
    offset = floor * jnp.sum(above, axis=-1, keepdims=True)
    corner = low + corner * scale[..., 0] + offset
    size = size * scale[..., 0] + floor
    ends = _MIN_DERIVATIVE + jax.nn.softplus(ends + _UNIT)
    (x0, y0), (width, height), (d0, d1) = (
        (part[..., 0] for part in jax.lax.split(pair, (1, 1), axis=pair.ndim - 1))
        for pair in (corner, size, ends)
    )
    return _Bin(x0, width, y0, height, d0, d1)


def _running_total(bins: int, dtype) -> Float[Array, "bins bins_plus_one"]:
    """Column j adds up the first j entries."""
    return jnp.triu(jnp.ones((bins, bins + 1), dtype), 1)
