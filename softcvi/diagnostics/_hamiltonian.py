"""Many Hamiltonian chains side by side, as one program that can be continued."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from softcvi._compile import by_effort, fused, put, rarely_run
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractTarget

LEAPFROG = 6
# From the first number of parameters on, draws are too few for a covariance matrix. Up
# to the second, products with the matrix cost less than the densities.
MANY, _MAX_DENSE = 100, 2000
ACCEPTANCE = 0.75
# One of so many transitions takes shorter steps, and is not used for tuning.
EVERY = 4
_SETTLED_DECADES = 1.5
# Nats of energy error from which a transition counts as divergent, as in Stan.
_DIVERGENT = 1000.0
_DISPERSED_DECADES = 3.0


class Chains(eqx.Module):
    """State of the chains, and statistics of their transitions since the last call.

    Attributes:
        x: Where the chains are, in the fitting space.
        log_p: Log densities there.
        force: Gradients there, per standard deviation.
        step: Step size that all share, in standard deviations.
        total: Sum of ``clipped x - centre`` over transitions, for each chain.
        squares: Sum of its square.
        acceptance: Sum of mean acceptance probabilities of transitions of full length.
        divergences: Number of those whose energy error was beyond all bounds.
    """

    x: Float[Array, "chains d"]
    log_p: Float[Array, " chains"]
    force: Float[Array, "chains d"]
    step: Float[Array, ""]
    total: Float[Array, "chains d"]
    squares: Float[Array, "chains d"]
    acceptance: Float[Array, ""]
    divergences: Int[Array, ""]


class Pace(eqx.Module):
    """How far a transition goes, and in how small steps.

    Attributes:
        leapfrog: Fewest and most steps of a transition, whose number is random: paths
            of one length come back to where they began in some directions.
        acceptance: Mean acceptance probability that the step size is tuned for.
    """

    leapfrog: Int[Array | np.ndarray, "2"]
    acceptance: Float[Array | np.ndarray, ""]

    @classmethod
    def of(cls, fewest: int, most: int, acceptance: float = ACCEPTANCE) -> "Pace":
        """A pace from plain numbers, which are no part of the compiled program."""
        steps = np.array([fewest, most], np.int32)
        return cls(steps, np.array(acceptance, np.float32))


class Geometry(eqx.Module):
    """The location and scales of the answer, in which the chains move.

    Attributes:
        factor: Factor of a covariance, for the chains' momentum; a matrix or, in many
            dimensions, a vector of standard deviations.
        centre: Means of the answer.
        limit: Distances from the centre beyond which sums count values as this far.
        tuned_by: How many chains, the first ones, the step size is tuned by; the
            others come from far out and try much shorter steps besides.
    """

    factor: Float[Array, "d d"] | Float[Array, " d"]
    centre: Float[Array, " d"]
    limit: Float[Array, " d"]
    tuned_by: Int[Array | np.ndarray, ""]

    def spread(self, p: Float[Array, "chains d"]) -> Float[Array, "chains d"]:
        """Vectors in standard deviations as vectors of the fitting space."""
        return spread_by(self.factor, p)

    def gather(self, force: Float[Array, "chains d"]) -> Float[Array, "chains d"]:
        """Gradients in the fitting space as gradients per standard deviation."""
        return force * self.factor if self.factor.ndim == 1 else force @ self.factor


def spread_by(factor: Any, noise: Any) -> Any:
    """Rows in standard deviations as vectors, by a matrix or by standard deviations.

    Args:
        factor: Factor of a covariance, or a vector.
        noise: One row for each vector.
    """
    return noise * factor if factor.ndim == 1 else noise @ factor.T


def factor_of(
    guide: AbstractGuide, vectors: np.ndarray, shares: np.ndarray | None = None
) -> np.ndarray:
    """A factor of an answer's covariance; standard deviations where draws are few.

    Args:
        guide: What the draws are from. With many parameters its own factor is taken,
            where it has one: thousands of draws do not tell the directions of hundreds.
        vectors: Draws.
        shares: Their weights, which sum to one; equal ones by default.
    """
    n, size = vectors.shape
    if shares is None:
        shares = np.full(n, 1 / n)
    if size > MANY and guide.has_base and (size <= _MAX_DENSE or guide.has_matrix):
        return np.asarray(_own_factor(guide), np.float64)
    if size > n // 2:
        mean = shares @ vectors
        return np.sqrt(shares @ (vectors - mean) ** 2)
    # One draw may have all the weight; the guide's own covariance keeps this positive
    # definite.
    weighted = np.cov(vectors.T, aweights=shares, ddof=0).reshape(size, size)
    own = np.cov(vectors.T).reshape(size, size)
    covariance = 0.9 * weighted + 0.1 * own
    ridge = 1e-9 * np.diag(np.diagonal(covariance) + 1e-30)
    return np.linalg.cholesky(covariance + ridge)


@rarely_run
def _own_factor(guide: AbstractGuide) -> Float[Array, "d d"]:
    """Derivative of a guide's draws by its base: exact if the map is affine."""
    zero = jnp.zeros_like(guide.sample_base(jax.random.key(0)))
    return jax.jacfwd(lambda z: guide.structure.ravel(guide.from_base(z)[0]))(zero)


def _jitter(
    key: PRNGKeyArray,
    i: Int[Array, ""],
    settled: Int[Array, ""],
    x: Float[Array, "chains d"],
) -> Float[Array, "chains 1"]:
    """Factors of the step size, one for each chain.

    A step that suits most places is too long for the stiffest ones, which chains then
    never enter or leave: every fourth transition tries shorter ones. Chains that come
    from far out need them all the time.
    """
    one_key, each_key = jax.random.split(key)
    usual = jax.random.uniform(one_key, (), x.dtype, 0.7, 1.0)
    exponent = jax.random.uniform(each_key, (x.shape[0], 1), x.dtype)
    is_settled = jnp.arange(x.shape[0])[:, None] < settled
    wide = jnp.where(i % EVERY == 0, 10.0 ** (-_SETTLED_DECADES * exponent), usual)
    return jnp.where(is_settled, wide, 10.0 ** (-_DISPERSED_DECADES * exponent))


def started(x: Float[np.ndarray, "chains d"]) -> Chains:
    """Chains at given points, before their first transition.

    Args:
        x: The points.
    """
    # NumPy, since JAX would compile each line as a program.
    zeros = np.zeros_like(x)
    unknown = np.full(x.shape[:1], -np.inf, x.dtype)
    step = np.asarray(0.7 * x.shape[1] ** -0.25, x.dtype)
    none = np.zeros((), x.dtype), np.zeros((), np.int32)
    parts = (x, unknown, zeros, step, zeros, zeros, *none)
    return Chains(*map(put, parts))


def num_full(transitions: int) -> int:
    """How many of a number of transitions have steps of full length.

    Args:
        transitions: Transitions of chains that are not new.
    """
    return max(transitions - -(-transitions // EVERY), 1)


def advance(
    key: PRNGKeyArray,
    chains: Chains,
    geometry: Geometry,
    target: AbstractTarget,
    transitions: Int[Array, ""],
    is_new: Int[Array, ""],
    pace: Pace,
) -> Chains:
    """A number of transitions of Hamiltonian Monte Carlo, with sums over them.

    Args:
        key: Random key.
        chains: Where the chains are.
        geometry: Scales of the answer.
        target: The posterior.
        transitions: How many; not part of the compiled program.
        is_new: 1 for chains whose densities are not known yet, else 0. Their first
            transition stays where it is, so that the density is compiled once.
        pace: Numbers and sizes of steps.
    """

    def value(x):
        out = target.log_density(target.structure.unravel(x))
        return jnp.where(jnp.isfinite(out), out, -jnp.inf)

    def evaluate(x):
        log_p, force = jax.vmap(jax.value_and_grad(value))(x)
        return log_p, geometry.gather(jnp.nan_to_num(force))

    def transition(i, state):
        stays = i < is_new
        keys = jax.random.split(jax.random.fold_in(fused(key), i), 3)
        dtype = state.x.dtype
        momentum = jax.random.normal(keys[0], state.x.shape, dtype)
        size = state.step * _jitter(keys[2], i, geometry.tuned_by, state.x)
        size = jnp.where(stays, 0.0, size)
        fewest, most = pace.leapfrog
        steps_key = jax.random.fold_in(keys[2], 1)
        steps = jax.random.randint(steps_key, (), fewest, most + 1)

        def leap(_, carry):
            x, p, _, force = carry
            p = p + 0.5 * size * force
            x = x + size * geometry.spread(p)
            log_p, force = evaluate(x)
            return x, p + 0.5 * size * force, log_p, force

        begin = (state.x, momentum, state.log_p, state.force)
        x, p, log_p, force = jax.lax.fori_loop(0, steps, leap, begin)
        kinetic = 0.5 * jnp.sum(momentum**2 - p**2, axis=1)
        log_ratio = jnp.nan_to_num(log_p - state.log_p + kinetic, nan=-jnp.inf)
        probability = jnp.exp(jnp.minimum(log_ratio, 0.0))
        uniform = jax.random.uniform(keys[1], probability.shape)
        accept = (uniform < probability) | stays
        counts = jnp.arange(len(probability)) < geometry.tuned_by
        mean = jnp.sum(jnp.where(counts, probability, 0.0)) / jnp.sum(counts)
        tuned = state.step * jnp.exp(mean - pace.acceptance.astype(dtype))
        is_tuning = ~stays & (i % EVERY > 0)
        is_divergent = counts & (log_ratio < -_DIVERGENT)
        num_divergent = jnp.sum(is_divergent, dtype=jnp.int32)
        x = jnp.where(accept[:, None], x, state.x)
        offset = jnp.clip(x - geometry.centre, -geometry.limit, geometry.limit)
        counted = jnp.where(stays, 0.0, 1.0)
        return Chains(
            x,
            jnp.where(accept, log_p, state.log_p),
            jnp.where(accept[:, None], force, state.force),
            jnp.where(is_tuning, tuned, state.step),
            state.total + counted * offset,
            state.squares + counted * offset**2,
            state.acceptance + jnp.where(is_tuning, mean, 0.0),
            state.divergences + jnp.where(is_tuning, num_divergent, 0),
        )

    zeros = jnp.zeros_like(chains.total)
    fresh = Chains(
        chains.x, chains.log_p, chains.force, chains.step, zeros, zeros,
        jnp.zeros_like(chains.acceptance), jnp.zeros_like(chains.divergences),
    )  # fmt: skip
    return jax.lax.fori_loop(0, transitions + is_new, transition, fresh)


# For chains of a few transitions, and for those that go on.
advance_by_effort = by_effort(advance)
