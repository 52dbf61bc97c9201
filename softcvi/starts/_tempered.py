"""A start without gradients: a broad population is tempered to the posterior.

Sequential Monte Carlo (Del Moral, Doucet and Jasra, 2006) from a wide mixture over
several scales. Particles move by differences of other particles (ter Braak, 2006),
which adapts steps to the population, however many modes it has.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from softcvi._compile import host_array, put, rarely_run
from softcvi.diagnostics._clusters import clusters
from softcvi.starts._base import AbstractStart, SearchEvidence, StartReport
from softcvi.starts._double import Density, as_density
from softcvi.starts._importance import (
    Fitted,
    LogDensity,
    TMixture,
    adapt,
    worth_keeping,
)
from softcvi.starts._launch import own_starts
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import cost_of
from softcvi.targets._numpy_random import numpy_generator

_SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
# Larger scales, for supports that none of the others reaches.
_FURTHER = (1e3, 1e4, 1e5)
_WIDE_DF = 30.0
_FEWEST_INSIDE = 0.1
_MAX_STAGES = 60
_MOVES = 4


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
            fitted = temper(rng, evaluate, own, self.particles)
        if fitted is None:
            words = "no finite density at any scale: start-up by label ESS"
            return StartReport(target, description=words)
        modes = worth_keeping(fitted)
        search = SearchEvidence(
            num_starts=self.particles,
            num_places=len(modes),
            num_seen_once=0,
            scales=_SCALES,
            smallest_feature=None,
            missing_mass=None,
        )
        words = f"{len(modes)} mode(s) found by {self.particles} tempered particles"
        return StartReport(target, modes, search, words)


# Numbers that are handed to a program at once, and operations of one call of it.
_NUMBERS, _OPERATIONS = 200_000, 1e9


class Evaluator(eqx.Module):
    """Log densities of any number of points by one compiled program.

    Attributes:
        density: The density.
        size: Points that the program evaluates side by side.
        most: Batches of so many points that it evaluates one after the other, as
            calling a program takes longer than what a small density does in it.
    """

    density: Density
    size: int
    most: int = 1

    @classmethod
    def of(cls, density: Density, size: int) -> "Evaluator":
        """An evaluator that takes as many points at once as are soon done.

        Args:
            density: The density.
            size: Points that the program evaluates side by side.
        """
        if not density.target.has_gradient:
            return cls(density, size)  # a callback, which may take any time
        numbers = size * max(density.target.structure.size, 1)
        operations = size * cost_of(density.program())
        most = min(_NUMBERS // numbers, int(_OPERATIONS / operations))
        return cls(density, size, max(most, 1))

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        values, at_once = [], self.most * self.size
        for begin in range(0, len(x), at_once):
            some = x[begin : begin + at_once]
            batches = -(-len(some) // self.size)
            room = host_array((at_once, x.shape[1]), self.density.dtype)
            # What fills the last batch is evaluated, too; the rest is not read.
            room[: batches * self.size] = np.resize(
                some, (batches * self.size, x.shape[1])
            )
            points = put(room.reshape(self.most, self.size, x.shape[1]))
            found = log_densities(points, np.int32(batches), self.density)
            values.append(np.asarray(found, np.float64).ravel()[: len(some)])
        return np.concatenate(values)


@rarely_run
def log_densities(
    x: Float[Array, "most size d"], batches: Int[ArrayLike, ""], density: Density
) -> Float[Array, "most size"]:
    """Log densities of the points of the first batches, one batch after the other."""

    def fill(i, values):
        return values.at[i].set(jax.vmap(density.value)(x[i]))

    return jax.lax.fori_loop(0, batches, fill, jnp.zeros(x.shape[:2], x.dtype))


def temper(
    rng: np.random.Generator,
    log_density: LogDensity,
    own: Float[np.ndarray, "m d"],
    n: int,
    broad: int = 0,
) -> Fitted | None:
    """Moments and evidence of every mode that a tempered population ends in.

    Args:
        rng: Random generator.
        log_density: The log density.
        own: The target's own starting points.
        n: Size of the population.
        broad: Draws to choose it from, at least: where the density is zero almost
            everywhere, what none of them meets is not found.
    """
    started = _population(rng, log_density, own, n, max(4 * n, broad))
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
    labels = clusters(x)
    starts = []
    for label in range(labels.max() + 1):
        members = x[labels == label]
        covariance = np.cov(members.T).reshape(x.shape[1], x.shape[1])
        ridge = 1e-8 * np.diag(np.var(x, axis=0) + np.finfo(float).tiny)
        starts.append((members.mean(axis=0), covariance + ridge))
    return adapt(rng, log_density, starts, np.log(np.bincount(labels)))


def _population(rng, log_density, own, n, broad):
    """Draws of a wide mixture that holds enough points of the support."""
    dim = own.shape[1]
    own = own[np.all(np.isfinite(own), axis=1)]
    means, factors = [np.zeros(dim)] * len(_SCALES), [s * np.eye(dim) for s in _SCALES]
    if len(own) > dim + 2:
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
