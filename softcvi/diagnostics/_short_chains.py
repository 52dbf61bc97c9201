"""Short Hamiltonian chains from draws: do they stay, and where do their averages go?"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import as_array, host_fold_in, rarely_run
from softcvi.diagnostics._clusters import chain_modes, factor_within
from softcvi.diagnostics._evidence import ChainCheck
from softcvi.diagnostics._hamiltonian import (
    LEAPFROG,
    MANY,
    Chains,
    Geometry,
    Pace,
    advance_by_effort,
    factor_of,
    num_full,
    spread_by,
    started,
)
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets._cost import affordable, effort_of
from softcvi.targets._numpy_random import numpy_generator

# Chains that still depend fully on their start do not show where they would end.
_LARGEST_MEMORY = 0.95


@dataclasses.dataclass(frozen=True)
class Limit:
    """The limit of each chain's average, and its dependence on the start."""

    each: np.ndarray
    memory: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The mean over chains."""
        return self.each.mean(axis=0)

    @property
    def error(self) -> np.ndarray:
        """Its standard error."""
        return self.each.std(axis=0) / np.sqrt(len(self.each))


# Chains of improper posteriors have no bounds.
@np.errstate(invalid="ignore", over="ignore")
def limit_of(later: np.ndarray, start: np.ndarray, modes: np.ndarray) -> Limit:
    """Limits of averages over chains, extrapolated by their dependence on the start.

    If what is left of the start's departure is the share ``memory``, the mean of
    ``later - memory * start`` is ``1 - memory`` times the mean in the long run.

    Args:
        later: Average over each chain.
        start: Where it started.
        modes: Number of the mode that it stays in, whose mean departures are from.
    """
    counts = np.bincount(modes)[:, None]
    centres = [
        np.stack([np.bincount(modes, column) for column in x.T], axis=1) / counts
        for x in (start, later)
    ]
    centred = start - centres[0][modes]
    variance = np.mean(centred**2, axis=0)
    covariance = np.mean(centred * (later - centres[1][modes]), axis=0)
    memory = covariance / np.where(variance > 0, variance, np.inf)
    memory = np.clip(memory, 0.0, _LARGEST_MEMORY)
    return Limit((later - memory * start) / (1 - memory), memory)


def spread_of(
    first: Limit, second: Limit, own: np.ndarray, errors: float
) -> np.ndarray:
    """Limits of the variances over chains; zero where they have none.

    What chains that remember their start go to is known so badly that a variance can
    come out negative. Where it could as well be the answer's own, the chains say
    nothing about it, and the answer's own is given back.

    Args:
        first: Where the means go.
        second: Where the means of squares go.
        own: Variances of the answer.
        errors: Standard errors that a value may be off by.
    """
    variance = second.value - first.value**2
    error = np.hypot(second.error, 2 * first.value * first.error)
    is_unknown = (variance <= 0) & (variance + errors * error >= own)
    return np.where(is_unknown, own, np.where(variance > 0, variance, 0.0))


_PROPOSALS = 4000
# Above this many parameters fewer chains are averaged over more transitions, which
# takes as long; transitions there are nearly independent in whitened space.
CHAINS_OF_MANY = 128
# Transitions for warm-up, then for measurement; measured again, over more of them,
# while the chains still depend on their starts.
_SETTLING = 30
_MEASURED: tuple[int, ...] = (30, 60, 120)
# Where a log density takes millions of operations: fewer chains within this budget, at
# least so many, with shorter warm-up and fewer dispersed starts.
_BUDGET = 1e11
_CHAINS_OF_COSTLY = 24
_SETTLING_OF_COSTLY = 10
_MEASURED_OF_COSTLY = (20, 60)
_DISPERSED_OF_COSTLY = 1 / 3
# A gradient takes about as long as so many values.
GRADIENT = 3
_FORGOTTEN = 0.5
# Share of the chains that start from a normal of twice the spread.
_DISPERSED_SHARE = 0.5
INFLATION = 2.0
# Larger values are cut off here, so that errors exist for heavy tails.
_LIMIT = 6.0
_POOLED_ERRORS = 3.0
_TYPICAL = 0.01
_MARGIN = 2.0
# Most parameters for which weights of whole draws are informative.
_MAX_WEIGHED = 100


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The draws that the chains are compared with."""

    vectors: np.ndarray
    shares: np.ndarray
    mean: np.ndarray
    limit: np.ndarray

    @classmethod
    def of(cls, sample: ImportanceSample) -> "_Answer":
        vectors = vectors_of(sample)
        shares = shares_of(sample)
        mean = shares @ vectors
        sd = np.sqrt(shares @ (vectors - mean) ** 2)
        return cls(vectors, shares, mean, _LIMIT * sd)

    def evenly_spread(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Numbers of draws by their shares, as many near the mean as far from it.

        A wide mode with a twentieth of the mass has most of the variance: by chance it
        would get half as many chains as it should, or twice as many, and keep them.
        """
        # All limits are the same number of standard deviations.
        away = (self.vectors - self.mean) / np.where(self.limit > 0, self.limit, 1.0)
        order = np.argsort(np.sum(away**2, axis=1))
        upto = np.cumsum(self.shares[order])
        at = np.searchsorted(upto, upto[-1] * (np.arange(n) + rng.uniform()) / n)
        return order[np.minimum(at, len(order) - 1)]

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
            density is expensive.

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
    answer = _Answer.of(sample)
    size = answer.mean.size
    if size > MANY:
        chains = min(chains, CHAINS_OF_MANY)
    settling, measured, share = _SETTLING, _MEASURED, _DISPERSED_SHARE
    per_chain = GRADIENT * LEAPFROG * (settling + measured[0])
    fewest = min(chains, _CHAINS_OF_COSTLY)
    chains = affordable(target, _BUDGET, fewest=fewest, most=chains, each=per_chain)
    if chains == _CHAINS_OF_COSTLY:
        settling, measured = _SETTLING_OF_COSTLY, _MEASURED_OF_COSTLY
        share = _DISPERSED_OF_COSTLY
    rng = numpy_generator(key)
    weighs = (sample.is_usable or sample.khat == -np.inf) and size <= _MAX_WEIGHED
    dispersed = int(share * chains) if weighs else 0
    factor = factor_of(posterior.guide, answer.vectors, answer.shares)
    pick = answer.evenly_spread(rng, chains - dispersed)
    noise = rng.normal(size=(dispersed, size))
    out = spread_by(factor, noise)
    begin = np.concatenate([answer.vectors[pick], answer.mean + INFLATION * out])
    dtype = jnp.result_type(*target.structure.dtypes)
    # Steps as long as the distance between modes would be rejected.
    within = factor_within(answer.vectors[pick]) if factor.ndim == 2 else None
    geometry = Geometry(
        as_array(factor if within is None else within, dtype),
        as_array(answer.mean, dtype),
        as_array(answer.limit, dtype),
        np.array(len(pick), np.int32),
    )
    none, one = np.int32(0), np.int32(1)
    state = started(np.asarray(begin, dtype))
    # Another key, since this one may have made the draws.
    keys = [host_fold_in(key, i + 1) for i in range(2 + len(measured))]
    pace = Pace.of(LEAPFROG, LEAPFROG)
    advance = advance_by_effort[effort_of(target)]
    state = advance(keys[0], state, geometry, target, none, one, pace)
    begun_at = np.asarray(state.log_p, np.float64)[: len(pick)]
    state = advance(keys[1], state, geometry, target, np.int32(settling), none, pace)
    for key, transitions in zip(keys[2:], measured, strict=True):
        state = advance(key, state, geometry, target, np.int32(transitions), none, pace)
        check = _compare(answer, begin[: len(pick)], state, transitions)
        if check.memory < _FORGOTTEN:
            break
    escaped = None
    if weighs:
        escaped = _escaped_share(posterior, sample, state, begun_at)
    return dataclasses.replace(check, escaped=escaped)


def shares_of(sample: ImportanceSample) -> np.ndarray:
    """Weights that sum to one; equal ones where weights would only add noise.

    Args:
        sample: Weighted draws.
    """
    n = len(sample.log_weights)
    shares = np.exp(sample.log_weights) if sample.is_usable else np.ones(n)
    return shares / shares.sum()


def vectors_of(sample: ImportanceSample) -> Float[np.ndarray, "n d"]:
    """Draws in the fitting space, one per row.

    Args:
        sample: Weighted draws.
    """
    leaves = map(np.asarray, jax.tree_util.tree_leaves(sample.particles))
    rows = [leaf.reshape(len(leaf), -1) for leaf in leaves]
    return np.concatenate(rows, axis=1).astype(np.float64)


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
    modes = chain_modes(total, squares)
    first = limit_of(total, at_start, modes)
    second = limit_of(squares, at_start**2, modes)
    own_first = answer.shares @ at_answer
    own_second = answer.shares @ at_answer**2
    # The largest of many errors is expected to be this large.
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
    """Values shrunk towards zero by their errors.

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
    """Share of the chains that ended where the answer should have density but has not.

    There the posterior is as dense as at the answer's own draws, but its density over
    the guide's is higher than at any of the guide's draws.
    """
    log_p = np.asarray(state.log_p, np.float64)
    log_q = np.asarray(_log_q(posterior.guide, state.x), np.float64)
    ratios = np.asarray(sample.log_p, np.float64) - sample.log_q
    highest = np.max(ratios[np.isfinite(ratios)])
    is_typical = log_p >= np.quantile(begun_at, _TYPICAL, method="lower")
    with np.errstate(invalid="ignore"):
        # NaN: outside the support of both.
        is_outside = ~(log_p - log_q <= highest + _MARGIN)
    dispersed = slice(len(begun_at), None)
    groups = (slice(0, len(begun_at)), dispersed)
    return max(float(np.mean((is_typical & is_outside)[g])) for g in groups)


@functools.partial(rarely_run, effort=0)
def _log_q(guide, x: Float[Array, "chains d"]) -> Float[Array, " chains"]:
    guide = paramax.unwrap(guide)
    return jax.vmap(lambda x: guide.log_prob(guide.structure.unravel(x)))(x)
