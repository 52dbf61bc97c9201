"""Whether the posterior is proper: the density must fall off in every direction.

A flat prior on a parameter that the data do not determine leaves the posterior
improper. A guide then widens for as long as it is trained, and none of its diagnostics
needs to notice: on any finite range the guide may fit well.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from softcvi._compile import as_array, rarely_run
from softcvi.targets import AbstractTarget
from softcvi.targets._numpy_random import numpy_generator

# Along a line a density has finite mass only if it falls faster than 1 / r, which is a
# slope below -1 of its logarithm against log r. A Cauchy tail has -2.
_SLOWEST_FALL = -1.0
_MARGIN = 0.05
# Distances in standard deviations of the draws. The far ones tell a very wide prior
# from a flat one where the draws are much too narrow.
_DISTANCES = 10.0 ** np.arange(1, 9)
# Flat directions from a Hessian have rounding errors, which are invisible up to the
# first of these distances.
_NEAR_DISTANCES = _DISTANCES[:4]
_BASE_POINTS = 8
_MAX_DIRECTIONS = 64
_MAX_HESSIAN = 200
_FLAT_CURVATURE = 1e-3
_SINGLE_SHARE = 0.99
# How far below the largest number the furthest points stay: sums of a few parameters
# times data must not overflow.
_ROOM = 1e4


class ImproperDirection(eqx.Module):
    """A direction in which the log density does not fall off.

    Attributes:
        name: The parameter that the direction moves most.
        share: Share of the direction's squared length that belongs to it, in units of
            the draws' standard deviations.
        slope: Change of the log density per factor e of distance; below -1 where the
            mass is finite.

    Example:
        >>> from softcvi.diagnostics import ImproperDirection
        >>> ImproperDirection("a", 1.0, 0.0).name
        'a'
    """

    name: str
    share: float
    slope: float


def improper_directions(
    key: PRNGKeyArray, target: AbstractTarget, particles: Float[ArrayLike, "n d"]
) -> tuple[ImproperDirection, ...] | None:
    """Directions along which the posterior appears to have infinite mass.

    Draws are moved far along single parameters, along the principal directions of the
    draws, and along directions without curvature; a direction counts where the density
    does not fall off from more than half of them. Draws are used rather than their
    mean, since a proper density may have single lines along which it does not fall (a
    funnel's axis).

    Args:
        key: Random key.
        target: The posterior.
        particles: Draws of a guide in the fitting space, as vectors.

    Returns:
        The directions, at most one per parameter; None where it was not measured (no
        gradient, so that evaluations may be expensive; discrete or amortised).

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.diagnostics import improper_directions
        >>> target = softcvi.DensityTarget(
        ...     lambda t: -0.5 * t["a"] ** 2, {"a": jnp.zeros(()), "b": jnp.zeros(())}
        ... )
        >>> draws = jax.random.normal(jax.random.key(0), (100, 2))
        >>> [d.name for d in improper_directions(jax.random.key(1), target, draws)]
        ['b']
    """
    structure = target.structure
    if not target.has_gradient or not structure.is_continuous or target.amortised:
        return None
    draws = np.asarray(particles, np.float64)
    draws = draws[np.all(np.isfinite(draws), axis=1)]
    if len(draws) < _BASE_POINTS:
        return None
    thinned = target.thinned()
    if thinned is not None and not improper_directions(key, thinned[0], particles):
        return ()  # where some of the rows make it fall, so do all
    rng = numpy_generator(key)
    base = draws[rng.choice(len(draws), _BASE_POINTS, replace=False)]
    scale = draws.std(axis=0)
    # Draws of an answer that has run away may be so wide that what lies further out
    # overflows.
    widest = np.finfo(jnp.result_type(float)).max / (_ROOM * _DISTANCES[-1])
    scale = np.where(scale > 0, np.minimum(scale, widest), 1.0)
    far = _directions(rng, draws, scale)
    flat = _flat_directions(target, base[0], scale)
    directions = np.concatenate([far, flat])
    # Both by one program, whatever the number of flat directions.
    values = [_heights(target, base, some * scale, len(far)) for some in (far, flat)]
    distances = (_DISTANCES, _NEAR_DISTANCES)
    slopes = np.concatenate(list(map(_slopes, values, distances)))
    names = np.repeat(
        structure.names, [int(np.prod(s, dtype=int)) for s in structure.shapes]
    )
    found: dict[str, ImproperDirection] = {}
    for direction, slope in zip(directions, slopes, strict=True):
        if not slope > _SLOWEST_FALL + _MARGIN:
            continue
        squares = direction**2 / np.sum(direction**2)
        largest = int(np.argmax(squares))
        name = str(names[largest])
        found.setdefault(
            name, ImproperDirection(name, float(squares[largest]), float(slope))
        )
    return tuple(found.values())


def _directions(
    rng: np.random.Generator, draws: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Both ways along axes and principal axes, in units of standard deviations."""
    size = draws.shape[1]
    axes = np.arange(size)
    if size > _MAX_DIRECTIONS:
        axes = np.sort(rng.choice(size, _MAX_DIRECTIONS, replace=False))
    rows = [np.eye(size)[axes]]
    if 1 < size <= len(draws):
        # The widest first: a guide grows along an improper direction.
        _, _, principal = np.linalg.svd(
            (draws - draws.mean(axis=0)) / scale, full_matrices=False
        )
        rows.append(principal[:_MAX_DIRECTIONS])
    both = np.concatenate(rows)
    return np.concatenate([both, -both])


def _flat_directions(
    target: AbstractTarget, point: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Both ways along directions in which the log density has no curvature."""
    if not 1 < point.size <= _MAX_HESSIAN:
        return np.zeros((0, point.size))
    hessian = np.asarray(_hessian(target, as_array(point)), np.float64)
    hessian = hessian * np.outer(scale, scale)
    if not np.all(np.isfinite(hessian)):
        return np.zeros((0, point.size))
    values, vectors = np.linalg.eigh(hessian)
    flat = vectors.T[np.abs(values) < _FLAT_CURVATURE]
    # Single parameters are followed further by themselves.
    flat = flat[np.max(flat**2, axis=1) < _SINGLE_SHARE][:_MAX_DIRECTIONS]
    return np.concatenate([flat, -flat])


def _heights(
    target: AbstractTarget, base: np.ndarray, directions: np.ndarray, batch: int
) -> np.ndarray:
    """Log densities along directions from all base points, so many lines at a time."""
    shape = (len(directions), len(base), len(_DISTANCES))
    values = np.empty(shape)
    points, distances = as_array(base), as_array(_DISTANCES)
    for begin in range(0, len(directions), batch):
        some = directions[begin : begin + batch]
        whole = as_array(np.resize(some, (batch, some.shape[1])))
        found = np.asarray(_along(target, points, whole, distances))
        values[begin : begin + batch] = found[: len(some)]
    return values


def _slopes(values: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Slope of the log density against log distance, the median over base points."""
    values = values[..., : len(distances)]
    with np.errstate(invalid="ignore"):
        steps = np.diff(values, axis=-1) / np.diff(np.log(distances))
    # An overflow tells nothing; a density of zero counts as a fall.
    known = ~np.isnan(values[..., 1:]) & ~np.isnan(values[..., :-1])
    steps = np.where(values[..., 1:] == -np.inf, -np.inf, steps)
    # The steepest slope decides: a very wide prior is flat near the draws, and
    # numerical limits may make it flat far away.
    steepest = np.min(steps, axis=-1, where=known, initial=np.inf)
    enough = np.sum(known, axis=-1) >= 2
    return np.median(np.where(enough, steepest, -np.inf), axis=1)


def _vector_density(target: AbstractTarget):
    return lambda vector: target.log_density(target.structure.unravel(vector))


@functools.partial(rarely_run, effort=0)
def _hessian(target: AbstractTarget, point: Float[Array, " d"]) -> Float[Array, "d d"]:
    return jax.hessian(_vector_density(target))(point)


@functools.partial(rarely_run, effort=0)
def _along(
    target: AbstractTarget,
    base: Float[Array, "b d"],
    directions: Float[Array, "m d"],
    distances: Float[Array, " r"],
) -> Float[Array, "m b r"]:
    density = _vector_density(target)

    # One direction at a time, so that memory does not grow with their number.
    def one_direction(direction):
        at = lambda point, r: density(point + r * direction)  # noqa: E731
        return jax.vmap(jax.vmap(at, (None, 0)), (0, None))(base, distances)

    return jax.lax.map(one_direction, directions)
