"""The default start: climb from dispersed points and take the moments found there."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import rarely_run
from softcvi.starts._base import (
    AbstractStart,
    Moments,
    SearchEvidence,
    StartReport,
)
from softcvi.starts._double import in_double_precision
from softcvi.starts._importance import adapt, num_draws
from softcvi.starts._newton import LocalNormal, newton_path
from softcvi.starts._ridge import along, line, ridge
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

MAX_NEWTON_DIM = 200
_PATHS = 16
_BATCH = 8
# Where there are two modes there may be more: one that a tenth of all starts lead to
# escapes so many paths once in a thousand times.
_PATHS_OF_MANY = 64
_MODE_GAP = 12.0
_DIP = 3.0


class Explore(AbstractStart):
    """Climb to the posterior from dispersed starts and take its moments.

    Runs in double precision, whatever the fit uses: Hessians of badly scaled models
    need the digits.

    Args:
        paths: Least number of climbs.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> target = softcvi.DensityTarget(
        ...     lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), jnp.zeros(2)
        ... )
        >>> report = softcvi.starts.Explore().find(jax.random.key(0), target)
        >>> report.modes[0].mean.round(1).tolist()
        [3.0, 3.0]
    """

    paths: int = eqx.field(static=True, default=_PATHS)

    def find(self, key: PRNGKeyArray, target: AbstractTarget) -> StartReport:
        if not target.has_gradient:
            words = "the target has no gradient: start-up by label ESS"
            return StartReport(target, description=words)
        size = target.structure.size
        if size > MAX_NEWTON_DIM:
            words = f"{size} parameters are too many for Newton paths: "
            return StartReport(target, description=words + "start-up by label ESS")
        rng = numpy_generator(key)
        paths = max(self.paths, _PATHS)

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
            words = "no path reached a finite density: start-up by label ESS"
            return StartReport(target, description=words)
        modes = sorted(modes, key=lambda m: -(m.log_evidence or -np.inf))
        return StartReport(
            target,
            tuple(modes),
            SearchEvidence(taken, len(modes), 0, (1.2,), None, None),
            f"{len(modes)} mode(s) found by {taken} Newton paths",
        )


def _unstacked(normals: LocalNormal) -> list[LocalNormal]:
    normals = jax.tree_util.tree_map(np.asarray, normals)
    return [
        jax.tree_util.tree_map(lambda leaf, i=i: leaf[i], normals)
        for i in range(len(normals.elbo))
    ]


@functools.partial(rarely_run, effort=0)
def _climb(key: PRNGKeyArray, taken: np.uint32, target: AbstractTarget) -> LocalNormal:
    keys = jax.random.split(jax.random.fold_in(key, taken), _BATCH)
    climb = functools.partial(climb_once, target=target, dtype=jnp.result_type(float))
    return jax.vmap(climb)(keys)


def climb_once(key: PRNGKeyArray, target: AbstractTarget, dtype: Any) -> LocalNormal:
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
