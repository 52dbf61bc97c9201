"""Comparing answers about one posterior: start and end, modes found and modes kept."""

import dataclasses
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from softcvi._compile import host_key
from softcvi.diagnostics import THRESHOLDS, Evidence, judge
from softcvi.diagnostics._redraw import num_redrawn, redraw
from softcvi.diagnostics._short_chains import vectors_of
from softcvi.posterior import ImportanceSample
from softcvi.starts import Moments
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import POINTS, Evaluator
from softcvi.starts._heights import Roundings
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import affordable, on_one_core
from softcvi.targets._numpy_random import numpy_generator
from softcvi.targets._rounding import are_errors

# Below this number of effective draws the number itself is unreliable, and the ELBO
# decides.
_FEW_EFFECTIVE = 20
_SURE = 3.0
_LOWER_SHARE = 0.9
# A mode is in the answer if draws near it have a fifth of the mass that it should have.
_KEPT_SHARE = 0.2
# Near: the squared distance exceeds its mean by at most so many of its standard
# deviations.
_NEAR = 5.0
# Log densities that drawing parameters anew may take, and their operations: together
# a few tenths of a second.
_EVALUATIONS, _OPERATIONS = 1_000_000, 1e9
_REDRAW_SEED = 20_26
# Nats by which a log density changes that is a rounding error.
_ERROR = 0.5


class Quality(NamedTuple):
    """How well a guide fits, by weighted draws.

    Attributes:
        elbo: Mean log ratio of posterior and guide.
        error: Its standard error.
        ess: Effective number of weighted draws.
        khat: Tail of the weights; minus infinity where it was not measured.
    """

    elbo: float
    error: float
    ess: float
    khat: float = -np.inf


def quality(log_ratios: Float[np.ndarray, " n"]) -> Quality:
    """The quality of a guide from log ratios ``log p - log q`` at its draws.

    Example:
        >>> import numpy as np
        >>> quality(np.zeros(100))
        Quality(elbo=0.0, error=0.0, ess=100.0, khat=-inf)
    """
    ratios = np.asarray(log_ratios, np.float64)
    ratios = np.where(np.isfinite(ratios), ratios, -np.inf)
    top = np.max(ratios, initial=-np.inf)
    if not np.isfinite(top):
        return Quality(-np.inf, 0.0, 0.0)
    weights = np.exp(ratios - top)
    ess = float(np.sum(weights) ** 2 / np.sum(weights**2))
    if not np.all(np.isfinite(ratios)):
        return Quality(-np.inf, 0.0, ess)
    error = float(np.std(ratios) / np.sqrt(ratios.size))
    return Quality(float(np.mean(ratios)), error, ess)


def quality_of(sample: ImportanceSample) -> Quality:
    """The quality of a guide from weighted draws."""
    found = quality(np.asarray(sample.log_p) - np.asarray(sample.log_q))
    return found._replace(khat=float(sample.khat))


def is_worse(end: Quality, start: Quality) -> bool:
    """Whether the end of a fit is worse than its start, beyond doubt.

    Both the ELBO and the effective number of draws must have fallen: a guide fitted by
    the forward divergence has a lower ELBO than the best, and better weights. A little
    fewer is enough where training has given the weights a heavy tail: noise of the
    steps in a guide that was right.

    Example:
        >>> is_worse(Quality(-9.0, 0.1, 50.0), Quality(-1.0, 0.1, 900.0))
        True
    """
    if not start.elbo - end.elbo > _SURE * np.hypot(start.error, end.error):
        return False
    if max(start.ess, end.ess) < _FEW_EFFECTIVE:
        return True
    is_tail_new = start.khat <= THRESHOLDS.good_khat < end.khat
    return end.ess < (1.0 if is_tail_new else _LOWER_SHARE) * start.ess


def missed_mass(modes: tuple[Moments, ...], sample: ImportanceSample) -> float:
    """Share of the mass of the modes that a start found in those no draw is near.

    Args:
        modes: What the start found, best first.
        sample: Weighted draws of the answer.
    """
    evidence = [mode.log_evidence for mode in modes]
    known = np.array([-np.inf if e is None else e for e in evidence], np.float64)
    if len(modes) < 2 or sample.particles is None or not np.isfinite(known).any():
        return 0.0
    shares = np.exp(known - np.max(known))
    shares = shares / np.sum(shares)
    vectors = vectors_of(sample)
    weights = np.exp(sample.log_weights)
    squares = np.stack([_squared_distance(vectors, mode) for mode in modes])
    volumes = np.array([_log_volume(mode) for mode in modes])
    # Of heavy tails most draws are far from every mode, and still of one of them.
    nearest = np.argmin(0.5 * squares + volumes[:, None], axis=0)
    size = vectors.shape[1]
    missed = 0.0
    for number, share in enumerate(shares):
        is_near = squares[number] < size + _NEAR * np.sqrt(2 * size)
        held = weights @ (is_near | (nearest == number))
        if held < _KEPT_SHARE * share:
            missed += float(share)
    return missed


def with_redrawn(
    evidence: Evidence,
    target: AbstractTarget,
    vectors: Float[np.ndarray, "n d"],
    weights: Float[np.ndarray, " n"] | None = None,
) -> Evidence:
    """The same evidence, with what happens when parameters are drawn anew.

    It takes a while, and so is left out where something speaks against the answer
    anyway, or where too few draws can be afforded.

    Args:
        evidence: What is known of the answer.
        target: The posterior.
        vectors: Draws of the answer in the fitting space.
        weights: Their weights; equal ones by default.
    """
    if not target.structure.is_continuous or target.draw_data(host_key(0)) is not None:
        return evidence
    if not judge(evidence).trusted:
        return evidence
    evaluations = affordable(target, _OPERATIONS, fewest=0, most=_EVALUATIONS)
    number = num_redrawn(vectors.shape[1], evaluations)
    if not number:
        return evidence
    rng, density = numpy_generator(host_key(_REDRAW_SEED)), as_density(target)
    with on_one_core(target), density.context():
        log_densities = Evaluator.of(density, POINTS)
        given = rng, log_densities, vectors, weights, number
        eps = density.rounding
        beside = partial(are_errors, *given[:2], eps=eps, nats=_ERROR, rounds=1)
        check = redraw(*given, beside, rounds=1)
        if check is not None and check.is_doubtful:
            # Errors may agree with those beside them, which takes longer to see.
            roundings = Roundings(rng, log_densities, at_once=POINTS)
            check = redraw(*given, partial(roundings.are_errors, nats=_ERROR))
    evidence = dataclasses.replace(evidence, redrawn=check)
    if evidence.search is None:
        return evidence
    # Of what it has met further out nothing is said: it goes far beyond the search.
    answer = Moments(vectors.mean(axis=0), np.diag(vectors.var(axis=0)))
    search = log_densities.with_infinite(evidence.search, (answer,))
    if (search.nearest_infinite or np.inf) > THRESHOLDS.far_away:
        return evidence
    return dataclasses.replace(evidence, search=search)


def _squared_distance(
    vectors: Float[np.ndarray, "n d"], mode: Moments
) -> Float[np.ndarray, " n"]:
    centred = vectors.astype(np.float64) - mode.mean
    if mode.covariance is None:
        return np.sum((centred / mode.deviations) ** 2, axis=1)
    return np.sum(np.linalg.solve(mode.covariance, centred.T).T * centred, axis=1)


def _log_volume(mode: Moments) -> float:
    """Logarithm of the product of the standard deviations along the axes of a mode."""
    if mode.covariance is None:
        return float(np.sum(np.log(mode.deviations)))
    return 0.5 * float(np.linalg.slogdet(mode.covariance)[1])
