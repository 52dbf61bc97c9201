"""Paths for densities so expensive that Hessians along the whole way cannot be paid.

A Hessian takes some evaluations for every parameter, a gradient a few in all. So there
is a Hessian now and then, and in between gradients update a root of its inverse (BFGS).
As on Newton paths, the normal with the highest ELBO on the way is kept, and a step is
only taken to where the density is higher, so no path ends where it is zero.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from softcvi.starts._double import Density
from softcvi.starts._newton import (
    ENOUGH,
    OUTSIDE,
    PATIENCE,
    TRUSTED_GAIN,
    LocalNormal,
    hessian_and_gradient,
    scaled_eigen,
)

_MAX_ITERATIONS = 80
# Iterations without a better normal after which a path ends: where the density has no
# maximum it would go on without end.
_LAST_BETTER = 20
_ELBO_PAIRS = 4
# Shares of the whole step, and of the one limited in every direction.
_SIZES = (0.0, 128.0, 8.0, 2.0, 1.0, *(2.0**-i for i in (1, 2, 4, 6, 8)), 5e-4, 6e-5)
_LIMITED_SIZES = (512.0, 64.0, 8.0, 1.0, 0.25, 2.0**-5, 2.0**-9)
# A path ends where its next step gains no more than this, in nats or relative to the
# height, with a Hessian of the point itself.
_GAIN, _RELATIVE_GAIN = 1e-3, 1e-6
# Least curvature along a step, relative to what is known, for an update.
_CURVED = 1e-6
# Most iterations from one Hessian to the next.
_RARELY = 8
# Evaluations of an iteration without a Hessian: of candidates, draws and a gradient.
PER_ITERATION = len(_SIZES) + len(_LIMITED_SIZES) + 2 * _ELBO_PAIRS + 3
# Iterations of a usual path.
ITERATIONS = 50


class _Path(eqx.Module):
    x: Float[Array, " d"]
    gradient: Float[Array, " d"]
    root: Float[Array, "d d"]
    log_det: Float[Array, ""]
    best: LocalNormal
    since_best: Int[Array, ""]
    is_idle: Bool[Array, ""]
    is_done: Bool[Array, ""]


def iterations_per_hessian(per_hessian: int) -> int:
    """How rarely to take Hessians: they take as much as the rest, if that is often.

    Args:
        per_hessian: Evaluations that one takes.

    Example:
        >>> iterations_per_hessian(100), iterations_per_hessian(1000)
        (4, 8)
    """
    return int(np.clip(math.ceil(per_hessian / PER_ITERATION), 2, _RARELY))


def frugal_paths(
    density: Density, starts: Float[Array, "b d"], every: Int[Array, ""]
) -> LocalNormal:
    """Ascend from each start and return the best local normal on each path.

    Args:
        density: The density.
        starts: Where to begin.
        every: Iterations from one Hessian to the next.
    """

    def is_going(carry):
        paths, iteration, _, half = carry
        limit = jnp.where(half > 0, PATIENCE[0] * half + PATIENCE[1], iteration + 1)
        is_soon = (iteration < _MAX_ITERATIONS) & (iteration < limit)
        return ~jnp.all(paths.is_done) & is_soon

    def body(carry):
        paths, iteration, age, half = carry
        is_due = (age >= every) | (iteration == _MAX_ITERATIONS - 1)
        going = jnp.sum(~paths.is_done)
        is_due |= 2 * jnp.sum(paths.is_idle & ~paths.is_done) >= going
        anew = jax.vmap(lambda path: _with_hessian(density, path))
        paths = jax.lax.cond(is_due, anew, lambda same: same, paths)
        age = jnp.where(is_due, 0, age)
        new = jax.vmap(lambda path: _next(density, path, age == 0))(paths)
        paths = jax.tree_util.tree_map(
            lambda a, b: jnp.where(
                paths.is_done.reshape((-1,) + (1,) * (a.ndim - 1)), a, b
            ),
            paths,
            new,
        )
        is_half = (half == 0) & (jnp.mean(paths.is_done) >= 0.5)
        return paths, iteration + 1, age + 1, jnp.where(is_half, iteration + 1, half)

    first, zero = jax.vmap(_first)(starts), jnp.asarray(0)
    carry = first, zero, jnp.asarray(every), zero
    return jax.lax.while_loop(is_going, body, carry)[0].best


def _first(start: Float[Array, " d"]) -> _Path:
    eye, no = jnp.eye(start.size, dtype=start.dtype), jnp.asarray(False)
    worst = jnp.asarray(-jnp.inf, start.dtype)
    best = LocalNormal(start, eye, worst, no)
    zero = jnp.zeros_like(start)
    log_det, since = jnp.zeros((), start.dtype), jnp.asarray(0)
    return _Path(start, zero, eye, log_det, best, since, no, no)


def _with_hessian(density: Density, path: _Path) -> _Path:
    """The path with gradient and inverse Hessian of the point where it is."""
    hessian, gradient = hessian_and_gradient(density, path.x)
    is_usable = jnp.all(jnp.isfinite(gradient)) & jnp.all(jnp.isfinite(hessian))
    hessian = jnp.where(is_usable, hessian, -jnp.eye(path.x.size, dtype=path.x.dtype))
    gradient = jnp.where(is_usable, gradient, 0.0)
    scale, values, vectors = scaled_eigen(hessian)
    root = scale[:, None] * vectors / jnp.sqrt(values)
    log_det = jnp.sum(jnp.log(scale)) - 0.5 * jnp.sum(jnp.log(values))
    new = (gradient, root, log_det, path.is_done | ~is_usable)
    return eqx.tree_at(lambda p: (p.gradient, p.root, p.log_det, p.is_done), path, new)


def _next(density: Density, path: _Path, is_fresh: Bool[Array, ""]) -> _Path:
    """One step, and the normal at the point it starts from."""
    dim, dtype, root = path.x.size, path.x.dtype, path.root
    half = np.random.default_rng(0).normal(size=(_ELBO_PAIRS, dim))
    noise = np.concatenate([half, -half])
    entropy = 0.5 * np.mean(np.sum(noise**2, axis=1)) + 0.5 * dim * np.log(2 * np.pi)

    def safe(x):
        value = density.value(x)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    # In the coordinates that the root whitens.
    slope = root.T @ path.gradient
    limit = TRUSTED_GAIN / jnp.maximum(jnp.abs(slope), jnp.finfo(dtype).tiny)
    sizes = jnp.asarray([*_SIZES, *_LIMITED_SIZES], dtype)
    whole, limited = sizes[: len(_SIZES)], sizes[len(_SIZES) :]
    steps = jnp.concatenate(
        [jnp.outer(whole, slope), jnp.outer(limited, jnp.clip(slope, -limit, limit))]
    )
    candidates = path.x + steps @ root.T
    draws = path.x + jnp.asarray(noise, dtype) @ root.T
    log_p = jax.vmap(safe)(jnp.concatenate([candidates, draws]))
    log_p, log_p_draws = log_p[: sizes.size], log_p[sizes.size :]
    elbo = jnp.mean(jnp.maximum(log_p_draws, log_p[0] - OUTSIDE))
    elbo = elbo + path.log_det + entropy
    is_better = elbo > path.best.elbo  # False for what is not a number
    gains = jnp.where(log_p == -jnp.inf, -jnp.inf, log_p - log_p[0])
    is_enough = gains >= ENOUGH * jnp.max(gains)
    pick = jnp.argmin(jnp.where(is_enough, sizes, jnp.inf))
    is_up = gains[pick] > 0
    x = jnp.where(is_up, candidates[pick], path.x)
    _, gradient = density.value_and_gradient(x)
    gradient = jnp.where(jnp.all(jnp.isfinite(gradient)), gradient, path.gradient)
    step = jnp.where(is_up, steps[pick], 0.0)
    new_root, log_det = _updated(root, path.log_det, step, path.gradient - gradient)
    is_little = ~(gains[pick] > _GAIN + _RELATIVE_GAIN * jnp.abs(log_p[0]))
    best = LocalNormal(
        jnp.where(is_better, path.x, path.best.mean),
        jnp.where(is_better, root @ root.T, path.best.covariance),
        jnp.where(is_better, elbo, path.best.elbo),
        is_little & is_fresh,
    )
    since = jnp.where(is_better, 0, path.since_best + 1)
    is_done = path.is_done | (is_little & is_fresh) | (since > _LAST_BETTER)
    return _Path(x, gradient, new_root, log_det, best, since, is_little, is_done)


def _updated(
    root: Float[Array, "d d"],
    log_det: Float[Array, ""],
    step: Float[Array, " d"],
    change: Float[Array, " d"],
) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """A root of the inverse Hessian that agrees with how the gradient has changed.

    BFGS in product form (Brodlie, Gourlay and Greenstadt, 1973).

    Args:
        root: The root so far.
        log_det: Log of its determinant.
        step: The step, in the coordinates that the root whitens.
        change: By how much the gradient has fallen.
    """
    change = root.T @ change
    curvature, square = step @ change, step @ step
    least = _CURVED * jnp.sqrt(square) * jnp.linalg.norm(change)
    is_curved = (curvature > least) & (square > 0)
    curvature = jnp.where(is_curved, curvature, 1.0)
    square = jnp.where(is_curved, square, 1.0)
    away = change - jnp.sqrt(curvature / square) * step
    new = root - jnp.outer(root @ step, away) / curvature
    more = 0.5 * (jnp.log(square) - jnp.log(curvature))
    return jnp.where(is_curved, new, root), jnp.where(
        is_curved, log_det + more, log_det
    )
