"""Draws of chains as an answer: where a guide is not trusted, chains from its draws."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import as_array, host_fold_in, rarely_run
from softcvi.diagnostics._evidence import Evidence, SamplerEvidence
from softcvi.diagnostics._hamiltonian import (
    ACCEPTANCE,
    EVERY,
    LEAPFROG,
    MANY,
    Chains,
    Geometry,
    Pace,
    advance_by_effort,
    factor_of,
    spread_by,
    started,
)
from softcvi.diagnostics._short_chains import (
    CHAINS_OF_MANY,
    GRADIENT,
    INFLATION,
    shares_of,
    vectors_of,
)
from softcvi.diagnostics._thresholds import THRESHOLDS
from softcvi.diagnostics._verdict import Verdict, judge
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable, call_in_batches
from softcvi.targets._numpy_random import numpy_generator

# Transitions of each warm-up round; the step scales are estimated again after it.
_SETTLING = (25, 50, 100)
# Draws that each chain keeps, and the most numbers that all keep together.
_KEPT, _MOST_NUMBERS = 64, 100_000_000
_FEWEST_KEPT = 8
# Elementary operations: some minutes on two cores.
_BUDGET = 4e12
# Chains are compared in so many groups, by where they were when measuring began.
_GROUPS = 4
_PIECE = 1000
# Chains with an R-hat above the first disagree; R-hat minus one must then fall below
# the second times its value in the round before.
MET_RHAT, _STUCK = 1.1, 0.9
# Factor on the share of rejections after too many divergent transitions.
_FEWER = 1 / 3


class ChainDraws(eqx.Module):
    """Draws of Markov chains, with their convergence diagnostics.

    Attributes:
        draws: Named arrays in model coordinates, chains joined.
        rhat: Largest R-hat over all scalars.
        ess: Smallest effective sample size over all scalars.
        divergences: Number of divergent transitions.

    Example:
        >>> from softcvi.ladder import ChainDraws
        >>> ChainDraws({}, rhat=1.2, ess=80.0, divergences=3).trusted
        False
    """

    draws: dict[str, Array]
    rhat: float
    ess: float
    divergences: int

    @property
    def evidence(self) -> SamplerEvidence:
        """What the verdict on these draws is made from."""
        lengths = [len(values) for values in self.draws.values()]
        return SamplerEvidence(
            self.rhat, self.ess, self.divergences, max(lengths, default=1)
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the chains agree, have mixed, and rarely diverged."""
        return judge(Evidence(sampler=self.evidence))

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the draws."""
        return self.verdict.trusted

    def sample(self, key: PRNGKeyArray, n: int) -> dict[str, Array]:
        """Some of the draws; with replacement if more are wanted than there are.

        Args:
            key: Random key.
            n: Number of draws.
        """
        total = self.evidence.num_draws
        index = numpy_generator(key).choice(total, n, replace=n > total)
        return {
            name: jnp.asarray(np.asarray(values)[index])
            for name, values in self.draws.items()
        }

    def __str__(self) -> str:
        return str(self.verdict)


def chains_from(
    key: PRNGKeyArray, posterior: Posterior, sample: ImportanceSample
) -> tuple[ChainDraws, Float[np.ndarray, "n d"]]:
    """Hamiltonian chains from draws of a guide, until they agree or cost too much.

    Many chains side by side begin at draws of the guide, half of them twice as far out
    with up to 100 parameters, and move in the space that it has whitened. Whether they
    have forgotten where they began is seen from groups of them by where they were, and
    from the first and second half of their transitions.

    Args:
        key: Random key.
        posterior: The guide; its target needs a gradient.
        sample: Draws of it.

    Returns:
        The draws, and the same as vectors of the fitting space.
    """
    target = posterior.target
    assert target is not None  # the caller has asked
    dtype = jnp.result_type(*target.structure.dtypes)
    vectors = vectors_of(sample)
    size = vectors.shape[1]
    usable = np.flatnonzero(np.isfinite(sample.log_p))
    rng = numpy_generator(key)
    begin = vectors[rng.choice(usable, CHAINS_OF_MANY)]
    factor = factor_of(posterior.guide, vectors, shares_of(sample))
    centre = vectors.mean(axis=0)
    num_calls, longest, acceptance = 0, LEAPFROG, ACCEPTANCE
    tuned_by = CHAINS_OF_MANY

    def moved(state, transitions: int, is_new: int = 0):
        nonlocal num_calls
        num_calls += 1
        geometry = Geometry(
            as_array(factor, dtype),
            as_array(centre, dtype),
            as_array(np.full(size, np.inf), dtype),
            np.array(tuned_by, np.int32),
        )
        pace = Pace.of(max(longest // 3, 1), longest, acceptance)
        numbers = np.int32(transitions), np.int32(is_new), pace
        call_key = host_fold_in(key, num_calls)
        return advance_by_effort[1](call_key, state, geometry, target, *numbers)

    def kept(state, count: int, every: int):
        snapshots, divergences = [], 0
        for _ in range(count):
            state = moved(state, every)
            snapshots.append(np.asarray(state.x))
            divergences += int(state.divergences)
        return state, np.stack(snapshots, axis=1), divergences

    if size <= MANY:
        # Draws of the guide alone cannot show what it lacks.
        noise = rng.normal(size=(CHAINS_OF_MANY // 2, size))
        out = spread_by(factor, noise)
        both = np.concatenate([begin[len(out) :], centre + INFLATION * out])
        log_p = np.asarray(moved(started(np.asarray(both, dtype)), 0, 1).log_p)
        begin = np.where(np.isfinite(log_p)[:, None], both, begin)
        tuned_by -= len(out)
    state = moved(started(np.asarray(begin, dtype)), 0, 1)
    for transitions in _SETTLING:
        state, x, _ = kept(state, _FEWEST_KEPT, transitions // _FEWEST_KEPT)
        state, is_lost = _without_lost(rng, state, x)
        # The guide's scales may be wrong; its directions are kept.
        factor = _rescaled(factor, np.std(x[~is_lost].reshape(-1, size), axis=0))
    tuned_by = CHAINS_OF_MANY
    count = _MOST_NUMBERS // (CHAINS_OF_MANY * size)
    count = int(np.clip(count, _FEWEST_KEPT, _KEPT))
    each = GRADIENT * CHAINS_OF_MANY * count * EVERY
    call = call_in_batches(target)
    left = affordable(
        target, _BUDGET, fewest=LEAPFROG, most=10**4, each=each, call=call
    )
    rhat = np.inf
    while True:
        begin, before = np.asarray(state.x), rhat
        state, x, divergences = kept(state, count, EVERY)
        rhat, ess = _agreement(x, begin)
        # Of the transitions between two draws all but one have steps of full length.
        divergences = math.ceil(divergences / (EVERY - 1))
        diverge = divergences >= THRESHOLDS.max_divergent_share * x[:, :, 0].size
        if rhat < THRESHOLDS.max_rhat and ess >= THRESHOLDS.min_ess and not diverge:
            break
        # Chains that stay in separate modes will never agree.
        if rhat > MET_RHAT and rhat - 1 > _STUCK * (before - 1):
            break
        if diverge:
            # The steps are too long for the narrowest regions, which would be missed.
            acceptance = 1 - _FEWER * (1 - acceptance)
        # Longer trajectories mix better than more of them where scales differ.
        left -= longest
        longest *= 2
        if longest > left:
            break
    x = x.reshape(-1, size)
    pieces = np.array_split(x, -(-CHAINS_OF_MANY * count // _PIECE))
    draws = [in_model(as_array(piece, dtype), target) for piece in pieces]
    joined = jax.tree_util.tree_map(lambda *leaves: np.concatenate(leaves), *draws)
    return ChainDraws(joined, rhat, ess, divergences), x.astype(np.float64)


def _without_lost(
    rng: np.random.Generator, state: Chains, x: Float[np.ndarray, "chains draws d"]
) -> tuple[Chains, np.ndarray]:
    """Chains that began too far out and never moved restart where others are.

    They have not moved at all, at places less probable than all where others are: a
    narrow mode, where steps are too long as well, is more probable.
    """
    log_p = np.asarray(state.log_p)
    is_still = np.all(x == x[:, :1], axis=(1, 2))
    if np.all(is_still) or not np.any(is_still):
        return state, np.zeros_like(is_still)
    moving = np.flatnonzero(~is_still)
    is_lost = is_still & ~(log_p >= np.min(log_p[moving]))
    index = np.where(is_lost, rng.choice(moving, len(x)), np.arange(len(x)))
    new = [np.asarray(leaf)[index] for leaf in (state.x, state.log_p, state.force)]
    return eqx.tree_at(lambda s: [s.x, s.log_p, s.force], state, new), is_lost


def _rescaled(factor: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """The same directions with other standard deviations of the scalars."""
    usable = np.isfinite(deviations) & (deviations > 0)
    if factor.ndim == 1:
        return np.where(usable, deviations, factor)
    own = np.sqrt(np.sum(factor**2, axis=1))
    return factor * np.where(usable, deviations / own, 1.0)[:, None]


def _agreement(
    x: Float[np.ndarray, "chains draws d"], begin: Float[np.ndarray, "chains d"]
) -> tuple[float, float]:
    """Largest R-hat and smallest effective sample size over all scalars.

    Many chains that are short agree only in groups: for each scalar, the chains that
    began low to those that began high, and both halves of their draws. The effective
    sample size follows from how much the averages of chains differ.
    """
    chains, draws, _ = x.shape
    order = np.argsort(begin, axis=0)
    rhat, ess = 1.0, np.inf
    away = np.abs(x - np.median(x, axis=(0, 1)))
    for values in (x, away):
        variance = np.var(values, axis=(0, 1), dtype=np.float64)
        varies = variance > 0
        halves = [
            np.mean(half, axis=1, dtype=np.float64)
            for half in np.array_split(values, 2, axis=1)
        ]
        ordered = [np.take_along_axis(half, order, axis=0) for half in halves]
        means = [
            group.mean(axis=0)
            for half in ordered
            for group in np.array_split(half, _GROUPS)
        ]
        between = np.var(means, axis=0, ddof=1)[varies] / variance[varies]
        of_chains = np.var(np.mean(halves, axis=0), axis=0, ddof=1)[varies]
        rhat = max(rhat, float(np.sqrt(1 + np.max(between, initial=0.0))))
        with np.errstate(divide="ignore"):
            sizes = np.minimum(chains * variance[varies] / of_chains, chains * draws)
        ess = min(ess, float(np.min(sizes, initial=np.inf)))
    if not np.all(np.isfinite(x)):
        return np.inf, 0.0
    return rhat, ess


@rarely_run
def in_model(x: Float[Array, "n d"], target: AbstractTarget) -> dict[str, Array]:
    """Vectors of the fitting space as named arrays in model coordinates.

    Args:
        x: The vectors.
        target: The posterior.
    """

    def one(x):
        return target.describe(target.space.to_model(target.structure.unravel(x)))

    return jax.vmap(one)(x)
