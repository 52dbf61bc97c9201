"""A start without gradients: broad populations are tempered to the posterior.

Sequential Monte Carlo (Del Moral, Doucet and Jasra, 2006) from a wide mixture over
several scales. Particles move by differences of other particles (ter Braak, 2006),
which adapts steps to the population, however many modes it has.

A population loses modes by chance: few of its particles are near a mode when it begins
to stand out, and those of another one may take all places. So several independent ones
are made, until each mode was met more than once.
"""

import math

import equinox as eqx
import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float, PRNGKeyArray

from softcvi.diagnostics._clusters import clusters
from softcvi.starts._base import AbstractStart, SearchEvidence, StartReport
from softcvi.starts._double import as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._importance import Fitted, LogDensity, adapt, worth_keeping
from softcvi.starts._launch import own_starts
from softcvi.starts._proposal import TMixture, factor_of
from softcvi.starts._scan import scan_draws
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

_SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
# Where later populations begin, in turn: from all scales at once the density is so much
# higher near the origin that modes there take the places of others further out.
_SINGLE_SCALES = (10.0, 30.0, 3.0, 100.0)
# Larger scales, for supports that none of the others reaches.
_FURTHER = (1e3, 1e4, 1e5)
_WIDE_DF = 30.0
_FEWEST_INSIDE = 0.1
_MAX_STAGES = 60
_MOVES = 4
# Independent populations: at least, one more for so many parameters, and at most if
# modes were met once only. In more dimensions a population loses a mode more often.
_POPULATIONS, _PER_POPULATION, _MOST_POPULATIONS = 2, 3, 8
# Particles that have to be near a place for it to be met, as a share of all.
_MET = 0.01
# A particle is near a place up to this squared distance, in units of a normal's.
_NEAR = 3.0
# Points that are scanned around what was found, for each particle.
_SCANNED = 4


class Tempered(AbstractStart):
    """Temper a broad population to the posterior; needs no gradient.

    Args:
        particles: Size of the population.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda x: -0.5 * jnp.sum((x - 7.0) ** 2), jnp.zeros(2)
        ... )
        >>> report = softcvi.starts.Tempered().find(jax.random.key(0), target)
        >>> bool(abs(report.modes[0].mean - 7.0).max() < 0.2)
        True
    """

    particles: int = eqx.field(static=True, default=500)

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        if not target.structure.is_continuous or target.amortised:
            words = "no search for discrete or amortised latents: start-up by label ESS"
            return StartReport(target, description=words)
        density = as_density(target)
        rng = numpy_generator(key)
        own = own_starts(key, target, self.particles)
        with density.context():
            evaluate = Evaluator(density, 2 * self.particles)
            found = temper(rng, evaluate, own, self.particles)
            if found is None:
                words = "no finite density at any scale: start-up by label ESS"
                return StartReport(target, description=words)
            scanned = scan_draws(
                rng, evaluate, found.fitted, _SCANNED * self.particles, keep=1
            )
        modes, count = worth_keeping(found.fitted), found.num_populations
        search = SearchEvidence(
            num_starts=count * self.particles,
            num_places=len(modes),
            num_seen_once=found.num_met_once,
            scales=_SCALES,
            smallest_feature=None,
            missing_mass=found.missing_mass,
            broad=scanned.whole,
        )
        words = (
            f"{len(modes)} mode(s) found by {count} populations of {self.particles} "
            "tempered particles"
        )
        return StartReport(target, modes, evaluate.with_infinite(search, modes), words)


class Tempering(eqx.Module):
    """What several tempered populations have found.

    Attributes:
        fitted: Moments and evidence of every place.
        num_populations: Number of populations.
        num_met_once: Places that one of several populations met.
        missing_mass: Estimated share of the mass that none of them met: the mass of
            the places that one of them met (Good, 1953).
    """

    fitted: Fitted
    num_populations: int
    num_met_once: int
    missing_mass: float | None


def temper(
    rng: np.random.Generator,
    log_density: LogDensity,
    own: Float[np.ndarray, "m d"],
    n: int,
    broad: int = 0,
    single: bool = False,
) -> Tempering | None:
    """Moments and evidence of every mode that tempered populations end in.

    Args:
        rng: Random generator.
        log_density: The log density.
        own: The target's own starting points.
        n: Size of a population.
        broad: Draws to choose it from, at least: where the density is zero almost
            everywhere, what none of them meets is not found.
        single: Whether one population is enough.
    """
    most = 1 if single else _MOST_POPULATIONS
    least = min(_POPULATIONS + own.shape[1] // _PER_POPULATION, most)
    places: list[tuple[np.ndarray, np.ndarray]] = []
    met: list[np.ndarray] = []
    while len(met) < most:
        turn = (len(met) - 1) % len(_SINGLE_SCALES)
        scales = (_SINGLE_SCALES[turn],) if met else _SCALES
        x = _tempered(rng, log_density, own, n, broad, scales)
        if x is None:
            return None
        places += _new_places(x, places)
        met.append(x)
        near = [[np.mean(_is_near(x, place)) > _MET for x in met] for place in places]
        counts = np.sum(near, axis=1)
        if len(met) >= least and np.all(counts > 1):
            break
    sizes = [np.mean([np.mean(_is_near(x, place)) for x in met]) for place in places]
    fitted = adapt(rng, log_density, places, np.log(np.maximum(sizes, 1 / n)))
    once, missing = counts <= 1, None
    if len(met) > 1:
        logs = [
            -np.inf if m.log_evidence is None else m.log_evidence for m in fitted.modes
        ]
        mass = np.exp(np.array(logs) - np.max(logs))
        missing = float(np.sum(mass[once]) / (np.sum(mass[once]) + np.sum(mass)))
    return Tempering(fitted, len(met), int(np.sum(once)), missing)


def _tempered(rng, log_density, own, n, broad, scales) -> np.ndarray | None:
    """One population at the end of its way; None if no point has a density."""
    started = _population(rng, log_density, own, n, max(4 * n, broad), scales)
    if started is None:
        return None
    wide, x, log_p = started
    log_q = wide.log_density(x)
    power = 0.0
    for _ in range(_MAX_STAGES):
        step = _largest_step(log_p - log_q, 1.0 - power)
        power += step
        logits = step * (log_p - log_q)
        # The first step chooses from the whole population, which is larger than n.
        x, log_p, log_q = _resampled(rng, logits, n, x, log_p, log_q)
        for _ in range(_MOVES):
            x, log_p, log_q = _metropolis_move(
                rng, log_density, wide, power, x, log_p, log_q
            )
        if power >= 1.0:
            break
    return x


def _new_places(
    x: np.ndarray, known: list[tuple[np.ndarray, np.ndarray]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Moments of the groups of a population that are not near known places."""
    labels = clusters(x)
    is_known = np.any(
        [np.zeros(len(x), bool), *(_is_near(x, k) for k in known)], axis=0
    )
    ridge = 1e-8 * np.diag(np.var(x, axis=0) + np.finfo(float).tiny)
    found = []
    for label in range(labels.max() + 1):
        members = x[labels == label]
        if np.mean(is_known[labels == label]) < 0.5:
            covariance = np.cov(members.T).reshape(x.shape[1], x.shape[1])
            found.append((members.mean(axis=0), covariance + ridge))
    return found


def _is_near(x: np.ndarray, place: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, covariance = place
    z = scipy.linalg.solve_triangular(factor_of(covariance), (x - mean).T, lower=True)
    return np.sum(z**2, axis=0) < _NEAR * scipy.special.chdtri(x.shape[1], 0.5)


def _population(rng, log_density, own, n, broad, scales):
    """Draws of a wide mixture that holds enough points of the support."""
    dim = own.shape[1]
    own = own[np.all(np.isfinite(own), axis=1)]
    means, factors = [np.zeros(dim)] * len(scales), [s * np.eye(dim) for s in scales]
    # The target's own starts are near the origin, which a single scale is to leave.
    if len(own) > dim + 2 and len(scales) > 1:
        spread = 1.5 * np.std(own, axis=0)
        means.append(own.mean(axis=0))
        factors.append(np.diag(spread + 1e-6 * (1.0 + np.max(spread))))
    for further in (None, *_FURTHER):
        if further is not None:
            means.append(np.zeros(dim))
            factors.append(further * np.eye(dim))
        weights = np.full(len(means), -math.log(len(means)))
        wide = TMixture(weights, np.stack(means), np.stack(factors), _WIDE_DF)
        x = wide.draw(rng, broad)[0]
        log_p = np.asarray(log_density(x))
        inside = np.flatnonzero(np.isfinite(log_p))
        if len(inside) >= _FEWEST_INSIDE * n:
            return wide, x[inside], log_p[inside]
    return None


def _largest_step(ratios: np.ndarray, left: float) -> float:
    """The largest step of the power that leaves half of the particles effective."""

    def share(step: float) -> float:
        weights = np.exp(step * (ratios - np.max(ratios)))
        return float(np.sum(weights) ** 2 / np.sum(weights**2) / len(weights))

    if share(left) >= 0.5:
        return left
    low, high = 0.0, left
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= 0.5 else (low, middle)
    return max(low, 1e-12)


def _resampled(rng, logits, n, *arrays):
    weights = np.exp(logits - np.max(logits))
    places = (np.arange(n) + rng.uniform()) / n
    index = np.searchsorted(np.cumsum(weights) / np.sum(weights), places)
    index = np.minimum(index, len(weights) - 1)
    return tuple(array[index] for array in arrays)


def _metropolis_move(rng, log_density, wide, power, x, log_p, log_q):
    """One Metropolis move of every particle by the difference of two others."""
    n, dim = x.shape
    one, other = rng.integers(n, size=(2, n))
    size = 2.38 / math.sqrt(2 * dim) * rng.uniform(0.3, 1.2, size=(n, 1))
    size = np.where(rng.uniform(size=(n, 1)) < 0.1, 1.0, size)
    noise = 1e-3 * np.std(x, axis=0) * rng.normal(size=x.shape)
    proposed = x + size * (x[one] - x[other]) + noise
    new_p = np.asarray(log_density(proposed))
    new_q = wide.log_density(proposed)
    gain = power * (new_p - log_p) + (1 - power) * (new_q - log_q)
    accepted = np.isfinite(new_p) & (np.log(rng.uniform(size=n)) < gain)
    return (
        np.where(accepted[:, None], proposed, x),
        np.where(accepted, new_p, log_p),
        np.where(accepted, new_q, log_q),
    )
