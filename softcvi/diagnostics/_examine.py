"""Evidence about a posterior from fresh draws, however it was fitted."""

import dataclasses

import numpy as np
from jaxtyping import PRNGKeyArray

from softcvi._compile import host_key, host_split, rehearse
from softcvi.diagnostics._cut import cut_share
from softcvi.diagnostics._evidence import Evidence, WeightEvidence
from softcvi.diagnostics._improper import improper_directions
from softcvi.diagnostics._precision import rounding_at
from softcvi.diagnostics._short_chains import short_chains, vectors_of
from softcvi.diagnostics._steady import change_between_traces
from softcvi.diagnostics._thresholds import THRESHOLDS
from softcvi.guides import AbstractGuide
from softcvi.posterior import ImportanceSample, Posterior
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable, on_one_core

# Draws used as base points of lines.
_FEW = 1000


def prepare_examination(posterior: Posterior) -> None:
    """Begin to compile what ``examine`` will need for such a posterior.

    Args:
        posterior: One of the same shapes.
    """
    rehearse(_examined, posterior.guide, posterior.target)


def _examined(guide: AbstractGuide, target: AbstractTarget) -> None:
    examine(host_key(0), Posterior(guide, target))


def examine(
    key: PRNGKeyArray,
    posterior: Posterior,
    sample: ImportanceSample | None = None,
    num_bad_densities: int = 0,
) -> Evidence:
    """Evidence from fresh draws: weights, short chains, precision, a finite mass.

    Args:
        key: Random key, not used to choose the posterior.
        posterior: The posterior; without its target nothing can be measured.
        sample: Fresh weighted draws, where they are at hand.
        num_bad_densities: Log densities that were NaN or plus infinity when it was
            fitted; with any, their place is looked for.

    Returns:
        Evidence without the facts of a run, which ``dataclasses.replace`` can add.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.diagnostics import examine, judge
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> judge(examine(jax.random.key(0), posterior)).level
        'trusted'
    """
    target = posterior.target
    size = posterior.guide.structure.size
    if target is None or target.amortised:
        return Evidence(dimension=size)
    with on_one_core(target):
        if sample is None:
            sample = fresh_importance(key, posterior)
        return _measured(key, posterior, target, sample, num_bad_densities)


def _measured(
    key: PRNGKeyArray,
    posterior: Posterior,
    target: AbstractTarget,
    sample: ImportanceSample,
    num_bad_densities: int,
) -> Evidence:
    weights = WeightEvidence.of(sample)
    evidence = Evidence(
        has_gradient=target.has_gradient,
        has_discrete=not target.structure.is_continuous,
        dimension=posterior.guide.structure.size,
        weights=weights,
        num_infinite=weights.num_infinite,
        change=change_between_traces(target, posterior.guide),
        model_warnings=target.model_warnings,
    )
    # Where no weight is usable there is nothing to start chains from.
    if not target.structure.is_continuous or not np.isfinite(sample.log_p).any():
        return evidence
    keys = host_split(key, 3)
    vectors = vectors_of(sample)[:_FEW]
    has_nan = num_bad_densities > 0 or weights.num_not_a_number > 0
    chains = None
    if target.has_gradient:
        chains = short_chains(keys[0], posterior, sample)
    return dataclasses.replace(
        evidence,
        chains=chains,
        precision=rounding_at(keys[1], target, vectors),
        improper=improper_directions(keys[2], target, vectors) or (),
        cut=cut_share(keys[1], target, vectors) if has_nan else None,
    )


_MORE = 4
# Most operations for the first draws, and fewest draws if the density costs more.
_BUDGET = 3e10
_FEWEST_OF_COSTLY = 1_000
# More draws are made if k-hat is within this many standard errors of its threshold.
_ERRORS = 2.0


def khat_error(khat: float, num_draws: int) -> float:
    """Standard error of k-hat, of a Pareto fit to the largest weights.

    Args:
        khat: The estimate.
        num_draws: Draws that it is made from.

    Example:
        >>> from softcvi.diagnostics import khat_error
        >>> round(khat_error(0.7, 4000), 2)
        0.12
    """
    tail = min(0.2 * num_draws, 3.0 * np.sqrt(num_draws))
    return (1.0 + max(khat, 0.0)) / float(np.sqrt(tail))


def fresh_importance(
    key: PRNGKeyArray, posterior: Posterior, *, fewest: int = 4_000, most: int = 64_000
) -> ImportanceSample:
    """Weighted draws, more of them where k-hat is near its threshold.

    More are also made where even weights have a high k-hat: a part of the posterior
    that the guide hardly reaches has no draw among a few thousand.

    The key must not have been used to choose this posterior among others: the best of
    several is judged too well by the draws that it was chosen by.

    Args:
        key: Random key.
        posterior: The fitted posterior, with its target.
        fewest: Draws to begin with; down to 1,000 where a log density takes more than
            some million operations.
        most: Draws at most.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> sample = softcvi.diagnostics.fresh_importance(jax.random.key(0), posterior)
        >>> len(sample.log_q)
        4000
    """
    n = min(fewest, most)
    if posterior.target is not None and n > _FEWEST_OF_COSTLY:
        n = affordable(posterior.target, _BUDGET, fewest=_FEWEST_OF_COSTLY, most=n)
    if posterior.guide.structure.size > THRESHOLDS.many_parameters:
        most = n  # weights of whole particles say little there
    sample = posterior.importance(key, n)
    if posterior.target is not None and _is_even(sample):
        # They seldom change the verdict, and may cost what the first draws may.
        most = affordable(posterior.target, _BUDGET, fewest=n, most=most)
    while n < most and _is_undecided(sample):
        n = min(_MORE * n, most)
        sample = posterior.importance(key, n, begun=sample)
    return sample


def _is_undecided(sample: ImportanceSample) -> bool:
    """Whether more draws may say something else about the weights."""
    if not np.isfinite(sample.khat):
        return False
    if _is_even(sample):
        return sample.khat > THRESHOLDS.good_khat
    n = len(sample.log_q)
    distance = abs(sample.khat - THRESHOLDS.usable_khat)
    return distance < _ERRORS * khat_error(sample.khat, n)


def _is_even(sample: ImportanceSample) -> bool:
    return sample.ess > THRESHOLDS.even_ess_share * len(sample.log_q)
