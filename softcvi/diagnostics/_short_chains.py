"""Short Hamiltonian chains from the draws of a posterior: do they stay?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi._compile import as_array, host_fold_in, rarely_run
from softcvi.diagnostics._chain_limits import Limit, limit_of, spread_of
from softcvi.diagnostics._clusters import clusters, factor_within
from softcvi.diagnostics._evidence import ChainCheck
from softcvi.diagnostics._hamiltonian import (
    LEAPFROG,
    Chains,
    Geometry,
    advance,
    num_full,
    started,
)
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import Structure
from softcvi.targets._cost import affordable
from softcvi.targets._numpy_random import numpy_generator

_PROPOSALS = 4000
# Above this many parameters fewer chains are averaged over more transitions, which
# takes as long; transitions there are nearly independent in whitened space.
_MANY = 100
_CHAINS_OF_MANY = 128
# Transitions to settle in, then to measure; measured again, over more of them, while
# the chains still remember where they started.
_SETTLING = 30
_MEASURED: tuple[int, ...] = (30, 60, 120)
# Where a log density takes millions of operations: fewer chains within a budget, down
# to so many; and of so few chains those that are measured are most.
_BUDGET = 1e11
_CHAINS_OF_DEAR = 24
_SETTLING_OF_DEAR = 10
_MEASURED_OF_DEAR = (20, 60)
_DISPERSED_OF_DEAR = 1 / 3
# A gradient takes about as long as so many values.
_GRADIENT = 3
_FORGOTTEN = 0.5
# So many chains start from a normal of twice the spread.
_DISPERSED_SHARE = 0.5
_INFLATION = 2.0
# Values further out count as this far, so that heavy tails have errors.
_LIMIT = 6.0
_POOLED_ERRORS = 3.0
_TYPICAL = 0.01
_MARGIN = 2.0
# Whole weights, and densities of the guide, mean something up to here.
_MAX_WEIGHED = 100


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The draws that the chains are compared with."""

    vectors: np.ndarray
    shares: np.ndarray
    mean: np.ndarray
    limit: np.ndarray

    @classmethod
    def of(cls, sample: ImportanceSample, structure: Structure) -> "_Answer":
        vectors = vectors_of(sample.particles, structure)
        n = len(vectors)
        shares = np.exp(sample.log_weights) if sample.is_usable else np.ones(n)
        shares = shares / shares.sum()
        mean = shares @ vectors
        sd = np.sqrt(shares @ (vectors - mean) ** 2)
        return cls(vectors, shares, mean, _LIMIT * sd)

    def offsets(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x - self.mean, -self.limit, self.limit)


def short_chains(
    key: PRNGKeyArray,
    posterior: Posterior,
    sample: ImportanceSample | None = None,
    *,
    chains: int = 512,
) -> ChainCheck:
    """Start many short chains at draws of the answer and see where they go.

    A guide in the wrong place can have good importance weights, because it never looks
    elsewhere; chains that follow the gradient of the model walk away from there. Most
    start at the answer's own draws. The others start twice as far out and show whether
    there are places as probable as the answer's that the guide does not have.

    Args:
        key: Random key.
        posterior: The fitted posterior; its target needs a gradient.
        sample: Weighted draws of it; drawn anew if not given.
        chains: Number of chains; fewer are used above 100 parameters, and where a log
            density is dear.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> check = softcvi.diagnostics.short_chains(jax.random.key(0), posterior)
        >>> check.shift < 0.1, check.escaped
        (True, 0.0)
    """
    target = posterior.target
    if target is None or not target.has_gradient or target.amortised:
        raise ValueError(
            "posterior: short chains need a target with a gradient and global latents."
        )
    if sample is None or sample.particles is None:
        sample = posterior.importance(key, _PROPOSALS)
    answer = _Answer.of(sample, target.structure)
    size = answer.mean.size
    if size > _MANY:
        chains = min(chains, _CHAINS_OF_MANY)
    settling, measured, share = _SETTLING, _MEASURED, _DISPERSED_SHARE
    per_chain = _GRADIENT * LEAPFROG * (settling + measured[0])
    fewest = min(chains, _CHAINS_OF_DEAR)
    chains = affordable(target, _BUDGET, fewest=fewest, most=chains, each=per_chain)
    if chains == _CHAINS_OF_DEAR:
        settling, measured = _SETTLING_OF_DEAR, _MEASURED_OF_DEAR
        share = _DISPERSED_OF_DEAR
    rng = numpy_generator(key)
    weighs = (sample.is_usable or sample.khat == -np.inf) and size <= _MAX_WEIGHED
    dispersed = int(share * chains) if weighs else 0
    factor = _factor(answer, rng)
    pick = rng.choice(len(answer.shares), chains - dispersed, p=answer.shares)
    noise = rng.normal(size=(dispersed, size))
    out = noise * factor if factor.ndim == 1 else noise @ factor.T
    begin = np.concatenate([answer.vectors[pick], answer.mean + _INFLATION * out])
    dtype = jnp.result_type(*target.structure.dtypes)
    # Steps as long as from one mode to the next are refused in all of them.
    within = factor_within(answer.vectors[pick]) if factor.ndim == 2 else None
    geometry = Geometry(
        as_array(factor if within is None else within, dtype),
        as_array(answer.mean, dtype),
        as_array(answer.limit, dtype),
        len(pick),
    )
    none, one = np.int32(0), np.int32(1)
    state = started(np.asarray(begin, dtype))
    # The key itself may have made the draws.
    keys = [host_fold_in(key, i + 1) for i in range(2 + len(measured))]
    state = advance(keys[0], state, geometry, target, none, one)
    begun_at = np.asarray(state.log_p, np.float64)[: len(pick)]
    state = advance(keys[1], state, geometry, target, np.int32(settling), none)
    for key, transitions in zip(keys[2:], measured, strict=True):
        state = advance(key, state, geometry, target, np.int32(transitions), none)
        check = _compare(answer, begin[: len(pick)], state, transitions)
        if check.memory < _FORGOTTEN:
            break
    escaped = None
    if weighs:
        escaped = _escaped_share(posterior, sample, state, begun_at)
    return dataclasses.replace(check, escaped=escaped)


def vectors_of(particles: PyTree, structure: Structure) -> np.ndarray:
    """Stacked particles as the rows of a matrix, in the structure's order.

    Args:
        particles: Particles with a leading axis.
        structure: Of one particle.
    """
    leaves = map(np.asarray, structure.treedef.flatten_up_to(particles))
    rows = [leaf.reshape(len(leaf), -1) for leaf in leaves]
    return np.concatenate(rows, axis=1).astype(np.float64)


def _factor(answer: _Answer, rng: np.random.Generator) -> np.ndarray:
    """A factor of the answer's covariance; standard deviations where draws are few."""
    vectors = answer.vectors
    n, size = vectors.shape
    if size > n // 2:
        return answer.limit / _LIMIT
    # Weights may sit on one draw; the guide's own covariance keeps this positive.
    weighted = np.cov(vectors.T, aweights=answer.shares, ddof=0).reshape(size, size)
    own = np.cov(vectors.T).reshape(size, size)
    covariance = 0.9 * weighted + 0.1 * own
    ridge = 1e-9 * np.diag(np.diagonal(covariance) + 1e-30)
    return np.linalg.cholesky(covariance + ridge)


def _compare(
    answer: _Answer, begin: np.ndarray, state: Chains, transitions: int
) -> ChainCheck:
    """Means and spreads of the chains beside those of the answer, beyond errors."""
    n, size = begin.shape
    total, squares = (
        np.asarray(part, np.float64)[:n] / transitions
        for part in (state.total, state.squares)
    )
    at_start, at_answer = answer.offsets(begin), answer.offsets(answer.vectors)
    # Chains that stay in separate modes remember which; the weights say how much mass
    # each mode has, and the chains what it looks like.
    modes = clusters(total)
    first = limit_of(total, at_start, modes)
    second = limit_of(squares, at_start**2, modes)
    own_first = answer.shares @ at_answer
    own_second = answer.shares @ at_answer**2
    # The largest of so many errors is to be expected, and no evidence.
    errors = 1.0 + np.sqrt(2 * np.log(size))
    # Chains that all stay at one draw have no spread: infinitely far from the answer's.
    with np.errstate(divide="ignore", invalid="ignore"):
        own_variance = own_second - own_first**2
        variance = spread_of(first, second, own_variance, errors)
        sd = np.sqrt(variance)
        own_error = _weighted_error(answer.shares, at_answer)
        shift = np.abs(first.value - own_first) / sd
        shift_error = np.hypot(first.error, own_error) / sd
        log_ratio = 0.5 * np.log(own_variance / variance)
        own_error = _weighted_error(answer.shares, at_answer**2) / own_variance
        spread_error = 0.5 * np.hypot(second.error / variance, own_error)
    ratio = np.exp(_beyond(log_ratio, errors * spread_error))
    return ChainCheck(
        shift=float(np.max(_beyond(shift, errors * shift_error))),
        spread=(float(np.min(ratio)), float(np.max(ratio))),
        acceptance=float(state.acceptance) / num_full(transitions),
        typical_spread=_typical_spread(answer, second, at_answer),
        memory=float(np.max([first.memory, second.memory])),
        error=float(errors * np.nanmax([0.0, *shift_error, *spread_error])),
    )


def _beyond(
    value: Float[ArrayLike, "..."], error: Float[ArrayLike, "..."]
) -> Float[ArrayLike, "..."]:
    """What is left of values when errors are taken away from their size.

    Infinite values stay so, whatever their error; parameters without any spread, such
    as constants, have nothing to compare.
    """
    error = np.where(np.isfinite(error), error, 0.0)
    value = np.where(np.isnan(value), 0.0, value)
    return np.sign(value) * np.maximum(np.abs(value) - error, 0.0)


def _typical_spread(answer: _Answer, second: Limit, at_answer: np.ndarray) -> float:
    """Ratio of standard deviations, averaged over parameters, beyond its error."""
    own = at_answer**2
    scale = np.maximum(answer.shares @ own, np.finfo(float).tiny)
    chains = np.mean(second.each / scale, axis=1)
    draws = np.mean(own / scale, axis=1)
    error = np.hypot(
        chains.std() / np.sqrt(len(chains)),
        np.sqrt(answer.shares**2 @ (draws - 1.0) ** 2),
    )
    mean = chains.mean()
    if not mean > 0:
        return np.inf
    return float(np.exp(_beyond(-0.5 * np.log(mean), _POOLED_ERRORS * error / 2)))


def _weighted_error(shares: np.ndarray, values: np.ndarray) -> np.ndarray:
    centred = values - shares @ values
    return np.sqrt(shares**2 @ centred**2)


def _escaped_share(
    posterior: Posterior,
    sample: ImportanceSample,
    state: Chains,
    begun_at: np.ndarray,
) -> float:
    """Share of the chains that ended where the answer should be and is not.

    There the posterior is as dense as at the answer's own draws, but its density over
    the guide's is higher than at any of the guide's draws.
    """
    log_p = np.asarray(state.log_p, np.float64)
    log_q = np.asarray(_log_q(posterior.guide, state.x), np.float64)
    ratios = np.asarray(sample.log_p, np.float64) - sample.log_q
    highest = np.max(ratios[np.isfinite(ratios)])
    is_typical = log_p >= np.quantile(begun_at, _TYPICAL, method="lower")
    with np.errstate(invalid="ignore"):
        # Outside the support of both the difference is no number: outside as well.
        is_outside = ~(log_p - log_q <= highest + _MARGIN)
    dispersed = slice(len(begun_at), None)
    groups = (slice(0, len(begun_at)), dispersed)
    return max(float(np.mean((is_typical & is_outside)[g])) for g in groups)


@rarely_run
def _log_q(guide, x: Float[Array, "chains d"]) -> Float[Array, " chains"]:
    guide = paramax.unwrap(guide)
    return jax.vmap(lambda x: guide.log_prob(guide.structure.unravel(x)))(x)
