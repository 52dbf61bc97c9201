"""From the normal at a mode to the normal that fits best around it.

Steps by gradients and Hessians averaged over draws of the normal move its mean and
covariance. The whole Hessian at draws is expensive; what its diagonal gains from the
mode to the draws costs two products with a vector for each of them, and is exact where
each parameter has a term of its own beside a fixed quadratic form, as in models with a
Gaussian process or a random walk. Whichever gives the higher bound is taken. Far from
the best normal whole steps go too far; part of a step, to part of the new precision,
then leads there in some rounds.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from softcvi._compile import rarely_run
from softcvi.starts._curvature import Hessians
from softcvi.starts._double import Density
from softcvi.starts._evaluator import Evaluator
from softcvi.targets._cost import cost_of

_POINTS = 64
# Elementary operations for Hessians at draws: some seconds on two cores.
_BUDGET = 2e10
# First damping of a precision that is not positive definite, and factor of the next.
_LEAST_DAMPING, _MORE = 1e-8, 4.0
FEW_ROUNDS, MANY_ROUNDS = 3, 40
# Nats by which the bound must rise for another round: of the first, and of more.
_GAIN, _LARGE_GAIN = 1e-2, 0.3
# Shares of the new precision, and of the step, where whole ones gain too little.
_PARTS = ((0.5, 1.0), (0.5, 0.3), (0.2, 1.0), (0.2, 0.3))
# Operations for many rounds.
_BUDGET_OF_ROUNDS = 1e11


def refined(
    x: Float[np.ndarray, " d"],
    factor: Float[np.ndarray, "d d"],
    log_density: Evaluator,
    hessians: Hessians,
    *,
    most_rounds: int = FEW_ROUNDS,
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Natural-gradient steps of a normal: averages over the same draws at first.

    Args:
        x: The mode.
        factor: Cholesky factor of the precision there.
        log_density: Evaluates many points.
        hessians: Hessians of the density.
        most_rounds: Most steps; a few are enough around a mode, where the normal is
            nearly the best one.

    Returns:
        Mean, and Cholesky factor of the precision.
    """
    size, density = x.size, hessians.density
    per_hessian = 3 * hessians.num_products(size) * cost_of(density.program())
    # At least one: the way to the mode took several Hessians, too.
    pairs = int(np.clip(_BUDGET / per_hessian / (2 * FEW_ROUNDS), 1, 8))
    rounds = int(_BUDGET_OF_ROUNDS / (2 * pairs * per_hessian))
    rounds = min(max(rounds, FEW_ROUNDS), most_rounds)
    parts = _PARTS if rounds > FEW_ROUNDS else ()
    rng = np.random.default_rng(0)
    noise, check = (_antithetic(rng, size) for _ in range(2))
    signs = rng.choice([-1.0, 1.0], size=noise.shape)
    mode, at_mode = x, factor @ factor.T

    def lower_bound(x, factor):
        values = log_density(_draws(x, factor, check))
        values = np.where(np.isfinite(values), values, -np.inf)
        return np.mean(values) - np.sum(np.log(np.diagonal(factor)))

    best = lower_bound(x, factor)
    for number in range(rounds):
        draws = _draws(x, factor, noise)
        gradients = _gradients(jnp.asarray(draws, density.dtype), density)
        gradient = np.mean(np.asarray(gradients, np.float64), axis=0)
        if not np.all(np.isfinite(gradient)):
            break  # their sum is too large for a number
        tried = [(factor, 1.0)]
        change = _diagonal_change(draws, mode, signs, density)
        if np.all(np.isfinite(change)):
            tried.append((precision_factor(at_mode + np.diag(change)), 1.0))
        some = np.concatenate([draws[:pairs], draws[len(draws) // 2 :][:pairs]])
        average = -sum(hessians.at(draw)[0] for draw in some) / len(some)
        is_known = np.all(np.isfinite(average))
        if is_known:
            tried.append((precision_factor(average), 1.0))
        found = [_stepped(x, gradient, *each, lower_bound) for each in tried]
        if is_known and max(each.bound for each in found) - best < _LARGE_GAIN:
            own = factor @ factor.T
            for share, part in parts:
                mixed = precision_factor((1 - share) * own + share * average)
                found.append(_stepped(x, gradient, mixed, part, lower_bound))
        chosen = max(found, key=lambda each: each.bound)
        if not chosen.bound > best:
            break
        gain = chosen.bound - best
        x, factor, best = chosen.x, chosen.factor, chosen.bound
        if gain < (_GAIN if number + 1 < FEW_ROUNDS else _LARGE_GAIN):
            break
        if number + 1 >= FEW_ROUNDS:
            # Many rounds with the same draws would fit these.
            noise = _antithetic(rng, size)
    return x, factor


class _Stepped(NamedTuple):
    bound: float
    x: Float[np.ndarray, " d"]
    factor: Float[np.ndarray, "d d"]


def _stepped(x, gradient, factor, part: float, lower_bound: Callable) -> _Stepped:
    """A normal with another precision, after part of its step."""
    step = part * scipy.linalg.cho_solve((factor, True), gradient)
    is_usable = np.all(np.isfinite(step))
    bound = lower_bound(x + step, factor) if is_usable else -np.inf
    return _Stepped(bound, x + step, factor)


def _antithetic(rng: np.random.Generator, size: int) -> Float[np.ndarray, "n d"]:
    half = rng.normal(size=(_POINTS // 2, size))
    return np.concatenate([half, -half])


def _draws(x, factor, noise) -> Float[np.ndarray, "n d"]:
    return x + scipy.linalg.solve_triangular(factor.T, noise.T).T


def _diagonal_change(draws, mode, signs, density: Density) -> Float[np.ndarray, " d"]:
    """What the diagonal of the precision gains on average from the mode to the draws.

    Products with random signs (Hutchinson): terms that do not change cancel.
    """
    dtype = density.dtype
    vectors = jnp.asarray(signs, dtype)
    there = _products_at(jnp.asarray(draws, dtype), vectors, density)
    modes = jnp.asarray(np.broadcast_to(mode, draws.shape), dtype)
    here = _products_at(modes, vectors, density)
    change = np.asarray(here, np.float64) - np.asarray(there, np.float64)
    return np.mean(signs * change, axis=0)


@rarely_run
def _products_at(
    x: Float[Array, "n d"], vectors: Float[Array, "n d"], density: Density
) -> Float[Array, "n d"]:
    return jax.vmap(lambda x, v: density.gradient_and_product(x, v)[1])(x, vectors)


def precision_factor(precision: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """Cholesky factor, after as much damping of a precision as it takes.

    Args:
        precision: A symmetric matrix.
    """
    return damped_factor(precision)[0]


def damped_factor(
    precision: Float[np.ndarray, "d d"], before: float = 0.0
) -> tuple[Float[np.ndarray, "d d"], float]:
    """The same, and the damping, where that of a matrix much like it is known.

    Args:
        precision: A symmetric matrix.
        before: Damping of the other matrix; each trial costs as much as a solution.
    """
    precision = 0.5 * (precision + precision.T)
    diagonal = np.abs(np.diagonal(precision))
    diagonal = np.maximum(diagonal, 1e-12 * max(np.max(diagonal), 1e-300))
    scale = 1.0 / np.sqrt(diagonal)
    scaled = precision * np.outer(scale, scale)
    damping = 0.0 if before <= _LEAST_DAMPING else before / _MORE
    while True:
        try:
            factor = np.linalg.cholesky(scaled + damping * np.eye(scale.size))
        except np.linalg.LinAlgError:
            damping = max(_MORE * damping, _LEAST_DAMPING)
            continue
        return factor / scale[:, None], damping


@rarely_run
def _gradients(x: Float[Array, "n d"], density: Density) -> Float[Array, "n d"]:
    """Gradients at draws; none where a wide normal has left what has a density."""
    found = jax.vmap(density.gradient)(x)
    return jnp.where(jnp.all(jnp.isfinite(found), axis=1, keepdims=True), found, 0.0)
