"""A long chain in the space whitened by the start, with the evidence by bridge."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from softcvi.guides import mean_field, whitened
from softcvi.starts import Laplace
from softcvi.targets import AbstractTarget
from softcvi_experiments.nuts import sample_potential

_ROUNDS = 200
# NumPyro takes a batch of starts for two chains or more.
_CHAINS = 2
_TINY = 1e-300


class Whitened(NamedTuple):
    """Draws of one chain.

    Attributes:
        draws: Arrays by site in model coordinates.
        ess: Smallest effective sample size.
        log_evidence: By bridge sampling between the chain and the start's normal.
    """

    draws: dict[str, np.ndarray]
    ess: float
    log_evidence: float


def whitened_chain(
    key, target: AbstractTarget, *, warmup: int, samples: int
) -> Whitened:
    """NUTS where the start's normal is a standard normal.

    Args:
        key: Random key.
        target: The target.
        warmup: Transitions of warm-up.
        samples: Draws.

    Example:
        >>> import softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> chain = whitened_chain(jax.random.key(0), target, warmup=50, samples=50)
        >>> round(chain.log_evidence, 2)
        1.84
    """
    start_key, run_key, draw_key = jax.random.split(key, 3)
    [mode, *_] = Laplace().find(jax.random.key(0), target).modes
    factor = jnp.asarray(np.linalg.cholesky(mode.dense), float)
    guide = whitened(mean_field(target), jnp.asarray(mode.mean, float), factor)
    size = target.structure.size

    def log_prob(z):
        particle, log_det = guide.from_base(z)
        return target.log_density(particle) + log_det

    def to_sites(z):
        particle, _ = guide.from_base(z)
        sites = target.describe(target.space.to_model(particle))
        log_q = -0.5 * jnp.sum(z**2) - 0.5 * size * jnp.log(2 * jnp.pi)
        return {**sites, "log ratio": log_prob(z) - log_q}

    run = sample_potential(
        run_key,
        lambda z: -log_prob(z),
        jax.random.normal(start_key, (_CHAINS, size)),
        to_sites,
        warmup=warmup,
        samples=samples,
    )
    draws = run.draws
    at_chain = np.asarray(draws.pop("log ratio"), np.float64)
    normal = jax.random.normal(draw_key, (_CHAINS * samples, size))
    at_normal = jax.jit(
        lambda z: jax.lax.map(lambda one: to_sites(one)["log ratio"], z)
    )
    ratios = np.asarray(at_normal(normal), np.float64)
    return Whitened(draws, run.ess, bridge(at_chain, ratios))


def bridge(at_posterior: np.ndarray, at_normal: np.ndarray) -> float:
    """Log evidence by bridge sampling (Meng and Wong, 1996) with equal numbers.

    Args:
        at_posterior: ``log p - log q`` at draws of the posterior.
        at_normal: The same at draws of q.

    Example:
        >>> bridge(np.full(5, 2.0), np.full(5, 2.0))
        2.0
    """
    at_normal = at_normal[np.isfinite(at_normal)]
    estimate = float(np.median(at_posterior))
    for _ in range(_ROUNDS):
        above = np.mean(expit(at_normal - estimate)) + _TINY
        below = np.mean(expit(estimate - at_posterior)) + _TINY
        estimate += float(np.log(above / below))
    return estimate
