"""The start of a fit: where the guide begins, and how long the start-up phase is."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from softcvi._compile import rarely_run
from softcvi.guides import (
    AbstractGuide,
    FullRankNormal,
    FullRankStudentT,
    Whitened,
)
from softcvi.posterior import Posterior
from softcvi.starts._double import in_double_precision
from softcvi.starts._importance import Moments, adapt, num_draws
from softcvi.starts._newton import LocalNormal, newton_path
from softcvi.starts._ridge import along, line, ridge
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

STARTUP_SHARE = 0.1
MAX_NEWTON_DIM = 200
_PATHS = 16
_BATCH = 8
# Where there are two modes there may be more: one that a tenth of all starts lead to
# escapes so many paths once in a thousand times.
_PATHS_OF_MANY = 64
_MODE_GAP = 12.0
_DIP = 3.0
_TUNED_SHARE = 0.2


class StartReport(eqx.Module):
    """What a start found out about the posterior.

    Attributes:
        modes: Moments of each separate mode, the best first; empty if not looked for.
        reason: What was done, in words.
    """

    modes: list[Moments]
    reason: str = eqx.field(static=True)


def explore(
    key: PRNGKeyArray, target: AbstractTarget, paths: int = _PATHS
) -> StartReport:
    """Climb to the posterior from dispersed starts and take its moments.

    Runs in double precision, whatever the fit uses: Hessians of badly scaled models
    need the digits.
    """
    if not target.has_gradient:
        return StartReport([], "the target has no gradient: start-up by label ESS")
    if target.structure.size > MAX_NEWTON_DIM:
        return StartReport(
            [],
            f"{target.structure.size} parameters are too many for Newton paths: "
            "start-up by label ESS",
        )
    rng = numpy_generator(key)

    def look() -> tuple[list[Moments], int]:
        log_density = lambda x: _log_densities(jnp.asarray(x), target)  # noqa: E731
        ends: list[LocalNormal] = []
        modes: list[LocalNormal] = []
        while len(ends) < (paths if len(modes) < 2 else max(paths, _PATHS_OF_MANY)):
            ends += _unstacked(_climb(key, np.uint32(len(ends)), target))
            modes = _separate_modes(ends, target)
        moments = [
            adapt(rng, log_density, mode.mean, mode.covariance) for mode in modes
        ]
        return moments, len(ends)

    modes, taken = in_double_precision(look, target)
    if not modes:
        return StartReport(
            [], "no path reached a finite density: start-up by label ESS"
        )
    modes = sorted(modes, key=lambda m: -m.log_evidence)
    return StartReport(modes, f"{len(modes)} mode(s) found by {taken} Newton paths")


def _unstacked(normals: LocalNormal) -> list[LocalNormal]:
    normals = jax.tree_util.tree_map(np.asarray, normals)
    return [
        jax.tree_util.tree_map(lambda leaf, i=i: leaf[i], normals)
        for i in range(len(normals.elbo))
    ]


@functools.partial(rarely_run, effort=0)
def _climb(key: PRNGKeyArray, taken: np.uint32, target: AbstractTarget) -> LocalNormal:
    keys = jax.random.split(jax.random.fold_in(key, taken), _BATCH)
    climb = functools.partial(_path, target=target, dtype=jnp.result_type(float))
    return jax.vmap(climb)(keys)


def _path(key: PRNGKeyArray, target: AbstractTarget, dtype: Any) -> LocalNormal:
    start = target.structure.ravel(target.initial_particle(key))
    return newton_path(_vector_density(target), start.astype(dtype))


@rarely_run
def _log_densities(
    x: Float[Array, "n d"], target: AbstractTarget
) -> Float[Array, " n"]:
    return jax.vmap(_vector_density(target))(x)


def _vector_density(target: AbstractTarget):
    return lambda x: target.log_density(target.structure.unravel(x))


def _separate_modes(
    ends: list[LocalNormal], target: AbstractTarget
) -> list[LocalNormal]:
    """Path ends of comparable evidence with a valley of density between them."""
    ends = sorted(ends, key=lambda normal: -normal.elbo)
    modes: list[LocalNormal] = []
    for normal in ends:
        if not normal.elbo > ends[0].elbo - _MODE_GAP:
            break
        # Most ends lie at a mode that is known, or a line to it says so at little cost.
        if any(_is_at(normal, mode) for mode in modes):
            continue
        if all(_depth(_on_line, normal, mode, target) > _DIP for mode in modes) and all(
            _depth(_on_ridge, normal, mode, target) > _DIP for mode in modes
        ):
            modes.append(normal)
    return modes


def _is_at(normal: LocalNormal, mode: LocalNormal) -> bool:
    """Whether a path ended within a standard deviation of a mode."""
    z = np.linalg.solve(_factor(mode.covariance), normal.mean - mode.mean)
    return bool(z @ z < 1.0)


def _factor(covariance: np.ndarray) -> np.ndarray:
    # Local normals far from a mode may be all but singular.
    return np.linalg.cholesky(covariance + 1e-6 * np.diag(np.diagonal(covariance)))


def _depth(way, one: LocalNormal, other: LocalNormal, target: AbstractTarget) -> float:
    """How far the log density falls below the lower end on a way between two."""
    factor = _factor(0.5 * (one.covariance + other.covariance))
    values = np.asarray(way(one.mean, other.mean, factor, target))
    return float(min(values[0], values[-1]) - np.min(values))


def _on_line(a: Array, b: Array, factor: Array, target: AbstractTarget) -> Array:
    points = np.asarray(line(a, b))
    # As many as the next step evaluates: the same program serves both.
    padded = np.resize(points, (num_draws(points.shape[1]), points.shape[1]))
    values = np.asarray(_log_densities(jnp.asarray(padded), target))[: len(points)]
    return np.where(np.isnan(values), -np.inf, values)


@functools.partial(rarely_run, effort=0)
def _on_ridge(a: Array, b: Array, factor: Array, target: AbstractTarget) -> Array:
    density = _vector_density(target)
    return along(density, ridge(density, a, b, factor))


def place(
    guide: AbstractGuide, mean: PyTree, covariance: PyTree
) -> AbstractGuide | None:
    """Move a guide to given moments, if its family knows how."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    mean, covariance = jnp.asarray(mean, dtype), jnp.asarray(covariance, dtype)
    return guide.matched(mean, covariance)


def can_be_placed(guide: AbstractGuide) -> bool:
    """Whether ``place`` can move guides of this family."""
    size = guide.structure.size
    return (
        guide.structure.is_continuous
        and place(guide, np.zeros(size), np.eye(size)) is not None
    )


def is_flow(guide: AbstractGuide) -> bool:
    """Whether a guide is a flow behind an affine map."""
    distribution = getattr(guide, "distribution", None)
    return isinstance(distribution, Whitened) and not isinstance(
        distribution.base, FullRankNormal | FullRankStudentT
    )


def starting_rate(guide: AbstractGuide, placed: bool) -> float:
    """Peak learning rate: smaller for a normal that already lies on the posterior.

    What is left to do there is fine-tuning, and noise grows with the rate. A flow is
    only put behind an affine map, and has everything still to learn.
    """
    is_tuned = placed and not is_flow(guide)
    return guide.suggested_rate * (_TUNED_SHARE if is_tuned else 1.0)


def place_by_newton(
    key: PRNGKeyArray, guide: AbstractGuide, target: AbstractTarget, *, paths: int
) -> AbstractGuide:
    """Traceable start for many fits at once: the best of a few Newton paths."""
    dtype = jnp.result_type(*guide.structure.dtypes)
    climb = functools.partial(_path, target=target, dtype=dtype)
    normals = jax.vmap(climb)(jax.random.split(key, paths))
    best = jnp.argmax(normals.elbo)
    placed = place(guide, normals.mean[best], normals.covariance[best])
    assert placed is not None  # the caller has asked can_be_placed
    return placed


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
    return Moments(vectors.mean(axis=0), covariance, np.inf, 0.0, -np.inf)


def moments_of_point(point: PyTree, target: AbstractTarget) -> Moments:
    """A small normal around one point given in model coordinates."""
    particle, _ = target.space.from_model_and_log_det(
        jax.tree_util.tree_map(jnp.asarray, point)
    )
    vector = np.asarray(target.structure.ravel(particle), np.float64)
    return Moments(vector, 0.01 * np.eye(vector.size), np.inf, 0.0, -np.inf)


def resolve_start(
    key: PRNGKeyArray, start: Any, target: AbstractTarget, starts: int = 1
) -> StartReport:
    """Normalise what the user gave as ``start`` to what was found out."""
    if start is None:
        return StartReport([], "no start-up: the guide begins as given")
    if isinstance(start, str):
        if start == "auto":
            return explore(key, target, max(_PATHS, starts))
        if start == "prior":
            draws = jax.vmap(target.initial_particle)(jax.random.split(key, 1000))
            draws = jax.vmap(target.space.to_model)(draws)
            return StartReport([moments_of_draws(draws, target)], "prior draws")
        raise ValueError(
            f"start: unknown '{start}'. Use 'auto', 'prior', None, a point, draws, or "
            "a fitted posterior."
        )
    if isinstance(start, Posterior):
        guide = paramax.unwrap(start.guide)
        particles = jax.vmap(guide.sample)(jax.random.split(key, 2000))
        draws = jax.vmap(target.space.to_model)(particles)
        return StartReport([moments_of_draws(draws, target)], "a fitted posterior")
    leaf = jnp.asarray(jax.tree_util.tree_leaves(start)[0])
    if leaf.ndim > len(target.structure.shapes[0]):
        return StartReport([moments_of_draws(start, target)], "draws")
    return StartReport([moments_of_point(start, target)], "a point")


def start_in_best_space(
    key: PRNGKeyArray, start: Any, target: AbstractTarget, starts: int = 1
) -> tuple[AbstractTarget, StartReport]:
    """The start, begun again if it reveals that other coordinates suit better."""
    report = resolve_start(key, start, target, starts)
    if not report.modes or not target.structure.is_continuous:
        return target, report
    spread = target.structure.unravel(np.sqrt(np.diag(report.modes[0].covariance)))
    better = target.recentred(spread) if isinstance(spread, dict) else None
    if better is None:
        return target, report
    report = resolve_start(key, start, better, starts)
    reason = f"{report.reason}, in centred coordinates"
    return better, StartReport(report.modes, reason)
