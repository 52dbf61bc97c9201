"""Many Hamiltonian chains side by side, as one program that can be continued."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.targets import AbstractTarget

LEAPFROG = 6
_TARGET_ACCEPTANCE = 0.75
_EVERY = 4
_SETTLED_DECADES = 1.5
_DISPERSED_DECADES = 3.0


class Chains(eqx.Module):
    """State of the chains, and what they went through since they were last asked.

    Attributes:
        x: Where the chains are, in the fitting space.
        log_p: Log densities there.
        force: Gradients there, per standard deviation.
        step: Step size that all share, in standard deviations.
        total: Sum of ``clipped x - centre`` over transitions, for each chain.
        squares: Sum of its square.
        acceptance: Sum of mean acceptance probabilities of transitions of full length.
    """

    x: Float[Array, "chains d"]
    log_p: Float[Array, " chains"]
    force: Float[Array, "chains d"]
    step: Float[Array, ""]
    total: Float[Array, "chains d"]
    squares: Float[Array, "chains d"]
    acceptance: Float[Array, ""]


class Geometry(eqx.Module):
    """What the chains know of the answer: its scales, not its density.

    Attributes:
        factor: Factor of a covariance, for the chains' momentum; a matrix or, in many
            dimensions, a vector of standard deviations.
        centre: Means of the answer.
        limit: Distances from the centre beyond which sums count values as this far.
        tuned_by: How many chains, the first ones, the step size is tuned by.
    """

    factor: Float[Array, "d d"] | Float[Array, " d"]
    centre: Float[Array, " d"]
    limit: Float[Array, " d"]
    tuned_by: int = eqx.field(static=True)

    def spread(self, p: Float[Array, "chains d"]) -> Float[Array, "chains d"]:
        """Vectors in standard deviations as vectors of the fitting space."""
        return p * self.factor if self.factor.ndim == 1 else p @ self.factor.T

    def gather(self, force: Float[Array, "chains d"]) -> Float[Array, "chains d"]:
        """Gradients in the fitting space as gradients per standard deviation."""
        return force * self.factor if self.factor.ndim == 1 else force @ self.factor


def _jitter(
    key: PRNGKeyArray, i: Int[Array, ""], settled: int, x: Float[Array, "chains d"]
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
    wide = jnp.where(i % _EVERY == 0, 10.0 ** (-_SETTLED_DECADES * exponent), usual)
    return jnp.where(is_settled, wide, 10.0 ** (-_DISPERSED_DECADES * exponent))


def started(x: Float[np.ndarray, "chains d"]) -> Chains:
    """Chains that stand at given points and know nothing yet.

    Args:
        x: The points.
    """
    # NumPy, since JAX would compile a program for each line.
    zeros = np.zeros_like(x)
    unknown = np.full(x.shape[:1], -np.inf, x.dtype)
    step = np.asarray(0.7 * x.shape[1] ** -0.25, x.dtype)
    parts = (x, unknown, zeros, step, zeros, zeros, np.zeros((), x.dtype))
    return Chains(*map(jnp.asarray, parts))


def num_full(transitions: int) -> int:
    """How many of so many transitions have steps of full length.

    Args:
        transitions: Transitions of chains that are not new.
    """
    return max(transitions - -(-transitions // _EVERY), 1)


@rarely_run
def advance(
    key: PRNGKeyArray,
    chains: Chains,
    geometry: Geometry,
    target: AbstractTarget,
    transitions: Int[Array, ""],
    is_new: Int[Array, ""],
) -> Chains:
    """So many transitions of Hamiltonian Monte Carlo, with sums over them.

    Args:
        key: Random key.
        chains: Where the chains are.
        geometry: Scales of the answer.
        target: The posterior.
        transitions: How many; not part of the compiled program.
        is_new: 1 for chains whose densities are not known yet, else 0. Their first
            transition stays where it is, so that the density is compiled once.
    """

    def value(x):
        out = target.log_density(target.structure.unravel(x))
        return jnp.where(jnp.isfinite(out), out, -jnp.inf)

    def evaluate(x):
        log_p, force = jax.vmap(jax.value_and_grad(value))(x)
        return log_p, geometry.gather(jnp.nan_to_num(force))

    def transition(i, state):
        stays = i < is_new
        keys = jax.random.split(jax.random.fold_in(key, i), 3)
        dtype = state.x.dtype
        momentum = jax.random.normal(keys[0], state.x.shape, dtype)
        size = state.step * _jitter(keys[2], i, geometry.tuned_by, state.x)
        size = jnp.where(stays, 0.0, size)

        def leap(_, carry):
            x, p, _, force = carry
            p = p + 0.5 * size * force
            x = x + size * geometry.spread(p)
            log_p, force = evaluate(x)
            return x, p + 0.5 * size * force, log_p, force

        begin = (state.x, momentum, state.log_p, state.force)
        x, p, log_p, force = jax.lax.fori_loop(0, LEAPFROG, leap, begin)
        kinetic = 0.5 * jnp.sum(momentum**2 - p**2, axis=1)
        log_ratio = jnp.nan_to_num(log_p - state.log_p + kinetic, nan=-jnp.inf)
        probability = jnp.exp(jnp.minimum(log_ratio, 0.0))
        uniform = jax.random.uniform(keys[1], probability.shape)
        accept = (uniform < probability) | stays
        mean = jnp.mean(probability[: geometry.tuned_by])
        tuned = state.step * jnp.exp(mean - _TARGET_ACCEPTANCE)
        is_tuning = ~stays & (i % _EVERY > 0)
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
        )

    zeros = jnp.zeros_like(chains.total)
    fresh = Chains(
        chains.x, chains.log_p, chains.force, chains.step, zeros, zeros,
        jnp.zeros_like(chains.acceptance),
    )  # fmt: skip
    return jax.lax.fori_loop(0, transitions + is_new, transition, fresh)
