"""Starts from what the user knows: a point, draws, a fitted posterior, the prior."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import PRNGKeyArray, PyTree

from softcvi.diagnostics import SearchEvidence
from softcvi.posterior import Posterior
from softcvi.starts._base import AbstractStart, Moments, StartReport
from softcvi.starts._choose import looks_normal
from softcvi.starts._explore import Explore
from softcvi.starts._funnel import without_funnel
from softcvi.starts._precise import in_enough_precision
from softcvi.starts._proposal import factor_of
from softcvi.targets import AbstractTarget
from softcvi.targets._cost import on_one_core

_PRIOR_DRAWS = 1000
_POSTERIOR_DRAWS = 2000
_POINT_VARIANCE = 0.01
# Most parameters for which a covariance is computed to choose coordinates.
_DENSE_DIM = 2000
_DRAWS_NEAR = 200
# Most levels of a hierarchy of scales.
_FUNNELS = 3
# Other coordinates are taken if the share of effective draws grows by this much.
_MORE = 1.1
# They may lose this much log evidence, as its estimates have errors.
_LOST = 0.5


class NoStart(AbstractStart):
    """No search: the guide begins as it was given.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> softcvi.starts.NoStart().find(jax.random.key(0), target).modes
        ()
    """

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        return StartReport(target, description="no start-up: the guide begins as given")


class FromPoint(AbstractStart):
    """A small normal around one point.

    Args:
        point: One particle in model coordinates.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> start = softcvi.starts.FromPoint(jnp.ones(2))
        >>> start.find(jax.random.key(0), target).modes[0].mean.tolist()
        [1.0, 1.0]
    """

    point: PyTree

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        particle, _ = target.space.from_model_and_log_det(
            jax.tree_util.tree_map(jnp.asarray, self.point)
        )
        vector = np.asarray(target.structure.ravel(particle), np.float64)
        mode = Moments(vector, _POINT_VARIANCE * np.eye(vector.size))
        return StartReport(target, (mode,), description="a point")


class FromDraws(AbstractStart):
    """The moments of draws.

    Args:
        draws: Particles in model coordinates with a leading axis.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> draws = 3.0 + jax.random.normal(jax.random.key(0), (100, 2))
        >>> report = softcvi.starts.FromDraws(draws).find(jax.random.key(0), target)
        >>> bool(abs(report.modes[0].mean - 3.0).max() < 0.5)
        True
    """

    draws: PyTree

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        mode = moments_of_draws(self.draws, target)
        return StartReport(target, (mode,), description="draws")


class FromPosterior(AbstractStart):
    """The moments of a fitted posterior.

    Args:
        posterior: A posterior over the same parameters.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
        >>> start = softcvi.starts.FromPosterior(posterior)
        >>> start.find(jax.random.key(0), target).description
        'a fitted posterior'
    """

    posterior: Posterior

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        guide = paramax.unwrap(self.posterior.guide)
        keys = jax.random.split(key, _POSTERIOR_DRAWS)
        particles = jax.vmap(guide.sample)(keys)
        draws = jax.vmap(target.space.to_model)(particles)
        mode = moments_of_draws(draws, target)
        return StartReport(target, (mode,), description="a fitted posterior")


class FromPrior(AbstractStart):
    """The moments of the target's own starting points, prior draws where it has them.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> softcvi.starts.FromPrior().find(jax.random.key(0), target).description
        'prior draws'
    """

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        keys = jax.random.split(key, _PRIOR_DRAWS)
        draws = jax.vmap(target.initial_particle)(keys)
        draws = jax.vmap(target.space.to_model)(draws)
        mode = moments_of_draws(draws, target)
        return StartReport(target, (mode,), description="prior draws")


class InBestSpace(AbstractStart):
    """Another start, begun again where it reveals that other coordinates suit better.

    Where single precision rounds log densities by more than a tenth, the target of the
    report computes them in double.

    Only for fits whose guide is still to be chosen: a given guide is tied to the
    coordinates it was made for.

    Args:
        start: The start.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> start = softcvi.starts.InBestSpace(softcvi.starts.Explore())
        >>> start.find(jax.random.key(0), target).target is target
        True
    """

    start: AbstractStart

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        with on_one_core(target):
            report = self._without_funnels(key, self._in_own_choice(key, target))
            return in_enough_precision(key, report)

    def _in_own_choice(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        glimpse = None
        has_a_choice = target.standardised is not None
        if has_a_choice:
            glimpse = self.start.glimpse(key, target)
        report = self.start.find(key, target) if glimpse is None else glimpse
        better = None
        if report.modes and has_a_choice:
            mode = report.modes[0]
            found = mode.mean, _given_the_others(mode, target)
            mean, spread = (
                target.structure.unravel(jnp.asarray(v, float)) for v in found
            )
            better = target.recentred(mean, spread, _draws_near(mode, target))
        if better is None:
            return report if glimpse is None else self.start.find(key, target)
        again = self.start.find(key, better)
        words = f"{again.description}, in coordinates that the data chose"
        return StartReport(again.target, again.modes, again.search, words)

    def _without_funnels(self, key: PRNGKeyArray, report: StartReport) -> StartReport:
        """The start again in coordinates without funnels, where that is better."""
        for _ in range(_FUNNELS):
            if not report.modes or looks_normal(report.modes[0]):
                break
            better = without_funnel(report.target, report.modes[0])
            if better is None:
                break
            # A quick check before a whole search: is the first place closer to normal?
            glimpse = self.start.glimpse(key, better)
            if glimpse is not None and not _has_more_even_weights(glimpse, report):
                break
            again = self.start.find(key, better)
            if not _is_more_normal(again, report):
                break
            words = f"{again.description}, relative to what sets their scales"
            report = StartReport(
                again.target, again.modes, _with_all_infinite(again, report), words
            )
        return report


def _with_all_infinite(new: StartReport, old: StartReport) -> SearchEvidence | None:
    """The new evidence, with what both searches have met of plus infinity."""
    if new.search is None or old.search is None:
        return new.search
    met = old.search.num_infinite, old.search.nearest_infinite
    return new.search.with_infinite(*met)


def _is_more_normal(new: StartReport, old: StartReport) -> bool:
    """Whether t densities are closer to the posterior in the new coordinates."""
    if not new.modes or _log_mass(new) < _log_mass(old) - _LOST:
        return False
    return _has_more_even_weights(new, old)


def _has_more_even_weights(new: StartReport, old: StartReport) -> bool:
    shares = [
        (report.modes[0].ess_share or 0.0) if report.modes else 0.0
        for report in (new, old)
    ]
    return shares[0] > _MORE * shares[1]


def _log_mass(report: StartReport) -> float:
    masses = [mode.log_evidence for mode in report.modes]
    return float(np.logaddexp.reduce([-np.inf if m is None else m for m in masses]))


def _given_the_others(mode: Moments, target: AbstractTarget) -> np.ndarray:
    """Standard deviations of the standardised scalars given those that are not."""
    spread = np.array(mode.deviations)
    if len(spread) > _DENSE_DIM:
        return spread
    of = np.asarray(target.structure.ravel(target.standardised), bool)
    covariance = mode.dense
    across = covariance[np.ix_(~of, of)]
    explained = across * np.linalg.solve(covariance[np.ix_(~of, ~of)], across)
    left = spread[of] ** 2 - np.sum(explained, axis=0)
    spread[of] = np.sqrt(np.maximum(left, np.finfo(float).tiny))
    return spread


def _draws_near(mode: Moments, target: AbstractTarget) -> PyTree | None:
    """Draws of a normal with the moments of a mode; None with too many parameters."""
    size = len(mode.mean)
    if size > _DENSE_DIM:
        return None
    noise = np.random.default_rng(0).normal(size=(_DRAWS_NEAR, size))
    draws = jnp.asarray(mode.mean + noise @ factor_of(mode.dense).T, float)
    return jax.vmap(target.structure.unravel)(draws)


def as_start(start: Any, target: AbstractTarget, *, paths: int = 1) -> AbstractStart:
    """Normalise what the user gave as ``start``.

    Args:
        start: ``"auto"``, ``"prior"``, None, a point, draws, a fitted posterior or a
            start.
        target: The posterior.
        paths: Least number of paths of an automatic start.

    Example:
        >>> import jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), jnp.zeros(2))
        >>> type(softcvi.starts.as_start(jnp.ones((9, 2)), target)).__name__
        'FromDraws'
    """
    if isinstance(start, AbstractStart):
        return start
    if start is None:
        return NoStart()
    if isinstance(start, str):
        named: dict[str, AbstractStart] = {
            "auto": Explore(paths=paths),
            "prior": FromPrior(),
        }
        if start not in named:
            raise ValueError(
                f"start: unknown '{start}'. Use 'auto', 'prior', None, a point, draws, "
                "a fitted posterior, or a start of softcvi.starts."
            )
        return named[start]
    if isinstance(start, Posterior):
        return FromPosterior(start)
    leaf = jnp.asarray(jax.tree_util.tree_leaves(start)[0])
    is_batch = leaf.ndim > len(target.structure.shapes[0])
    return FromDraws(start) if is_batch else FromPoint(start)


def moments_of_draws(draws: PyTree, target: AbstractTarget) -> Moments:
    """Mean and covariance, in the fitting space, of draws in model coordinates."""
    particles = jax.vmap(lambda x: target.space.from_model_and_log_det(x)[0])(draws)
    if isinstance(particles, dict):
        particles = {name: particles[name] for name in target.like}
    vectors = np.asarray(jax.vmap(target.structure.ravel)(particles), np.float64)
    if vectors.shape[0] < vectors.shape[1] + 2:
        raise ValueError(
            f"start: {vectors.shape[0]} draws are too few for a covariance of "
            f"{vectors.shape[1]} parameters; give more, or a single point."
        )
    covariance = np.cov(vectors.T).reshape(vectors.shape[1], vectors.shape[1])
    covariance = covariance + 1e-8 * np.diag(np.diagonal(covariance) + 1e-12)
    return Moments(vectors.mean(axis=0), covariance)
