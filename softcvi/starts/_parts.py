"""Independent parts of a posterior: groups of coordinates that share no term.

Where the log density is a sum of functions of a few parameters each, modes multiply:
160 double wells have 2^160 of them, which no search counts and no weight of a whole
particle ranks. Each part by itself is a small posterior.
"""

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.csgraph
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Scalar

from softcvi._compile import as_array, host_key, rarely_run
from softcvi.starts._base import Moments
from softcvi.starts._curvature import curvature
from softcvi.starts._double import Density, as_density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._launch import candidates, far_starts, first_finite, own_starts
from softcvi.targets import AbstractTarget, DensityTarget
from softcvi.targets._cost import cost_of
from softcvi.targets._numpy_random import numpy_generator

# Fewer parameters are searched as a whole.
_FEWEST = 17
# Posteriors of so many kinds at most are fitted one after the other.
_MOST_KINDS = 256
# Elementary operations of the Hessians.
_BUDGET = 1e11
# Points at which a Hessian is taken, and scales about the origin that they are from.
_POINTS, _SCALES = 3, (1.0, 3.0)
# Scales of the points farther out, at which parts are exchanged, too.
_FAR = (10.0, 30.0, 100.0)
# Pairs of points whose parts are exchanged, and batch size of log densities.
_PAIRS, _BATCH = 64, 64
# Distance of points from a mode, in its standard deviations.
_NEAR = 0.5
# Points at which the parts' gradients are compared, and their scales.
_ALIKE, _WIDTHS = 64, (1.0, 3.0, 10.0, 30.0)


class Parts(eqx.Module):
    """A posterior that is a product, and the parameters of each factor.

    Attributes:
        target: The posterior.
        kinds: For each kind of part the coordinates of all parts that are alike, one
            row each.
        rest: Where the other parameters are while one part is looked at.
        height: Log density there.
    """

    target: AbstractTarget
    kinds: tuple[np.ndarray, ...]
    rest: Float[np.ndarray, " d"]
    height: float

    @property
    def count(self) -> int:
        """Number of parts."""
        return sum(len(rows) for rows in self.kinds)

    @property
    def largest(self) -> int:
        """Parameters of the largest part."""
        return max(rows.shape[1] for rows in self.kinds)

    def one(self, kind: int) -> DensityTarget:
        """The posterior of one part of a kind, with the others kept where they are.

        Args:
            kind: Number of the kind.
        """
        dtype = jnp.result_type(*self.target.structure.dtypes)
        which = self.kinds[kind][0]
        observed = self.target, as_array(self.rest, dtype), as_array(which, np.int32)
        like = jax.ShapeDtypeStruct(which.shape, dtype)
        own = functools.partial(_own_start, observed)
        return DensityTarget(_of_part, like, observed=observed, initial=own)

    def hold_at(self, draws: Float[np.ndarray, "n d"]) -> bool:
        """Whether the posterior is the product of its parts at these points, too.

        Args:
            draws: Points, drawn independently.
        """
        density = as_density(self.target)
        owner = np.zeros(draws.shape[1], int)
        members = [row for rows in self.kinds for row in rows]
        for number, row in enumerate(members):
            owner[row] = number
        rng = numpy_generator(host_key(0))
        with density.context():
            half = len(draws) // 2
            pairs = draws[:half], draws[half : 2 * half]
            if not _are_exchangeable(rng, owner, pairs, density):
                return False
            for rows in self.kinds:
                values = draws[:_ALIKE, rows[0]]
                found = _gradients_of(values, rows, self.rest, density)
                if len(rows) > 1 and not np.all(_are_alike(found, found[:1], density)):
                    return False
        return True


def _of_part(particle: Float[ArrayLike, " k"], observed: PyTree) -> Scalar:
    target, rest, which = observed
    vector = rest.at[which].set(particle)
    return target.log_density(target.structure.unravel(vector))


def _own_start(observed: PyTree, key: PRNGKeyArray) -> Float[Array, " k"]:
    target, rest, which = observed
    vector = target.structure.ravel(target.initial_particle(key))
    return vector[which].astype(rest.dtype)


def independent_parts(
    key: PRNGKeyArray, target: AbstractTarget, modes: Sequence[Moments] = ()
) -> Parts | None:
    """The parts of a posterior that is a product; None where it is not known to be one.

    Two parameters share no term if their mixed second derivative is zero. It is known
    at a few points only, so pairs of points also exchange some of their parts, which
    leaves the sum of their log densities as it was if the parts are independent.
    ``Parts.hold_at`` checks the same at the draws of the answer.

    The density of a mixture looks like a product wherever one of its components
    outweighs the others, so the points include draws from every mode that is known.

    Args:
        key: Random key.
        target: The posterior.
        modes: What is known of its modes, in the target's coordinates.

    Example:
        >>> import jax, jax.numpy as jnp, softcvi
        >>> from softcvi.starts._parts import independent_parts
        >>> target = softcvi.DensityTarget(
        ...     lambda x: -jnp.sum((x[::2] - 3.0) ** 2 * (1 + x[1::2] ** 2)),
        ...     jnp.zeros(20),
        ... )
        >>> independent_parts(jax.random.key(0), target).kinds[0][:2].tolist()
        [[0, 1], [2, 3]]
    """
    if not _can_be_split(target):
        return None
    density, size = as_density(target), target.structure.size
    if 3 * _POINTS * size * cost_of(density.program()) > _BUDGET:
        return None
    rng = numpy_generator(key)
    own = own_starts(key, target, candidates(_POINTS))
    with density.context():
        log_density = Evaluator(density, _BATCH)
        far = far_starts(rng, _SCALES, size, candidates(_PAIRS))
        points = first_finite(np.concatenate([own, far]), 2 * _PAIRS, log_density)
        heights = np.asarray(log_density(points))
        points = points[np.isfinite(heights)]
        if len(points) < 2 * _POINTS:
            return None
        meets = np.zeros((size, size), bool)
        for x in points[:: max(1, len(points) // _POINTS)][:_POINTS]:
            meets |= curvature(x, density)[0] != 0  # NaN counts
        count, owner = scipy.sparse.csgraph.connected_components(meets)
        if count < 2 or 2 * np.max(np.bincount(owner)) > size:
            return None
        out = far_starts(rng, _FAR, size, candidates(_PAIRS))
        out = first_finite(out, 2 * _PAIRS, log_density)
        pairs = _pairs(rng, points, out, modes)
        if not _are_exchangeable(rng, owner, pairs, density):
            return None
        rest = points[np.argmax(log_density(points))]
        kinds = _kinds(rng, owner, rest, density)
        if len(kinds) > _MOST_KINDS:
            return None
        # Parts that are alike have the others at the same height.
        for rows in kinds:
            rest[rows] = rest[rows[0]]
        height = float(log_density(rest[None])[0])
    return Parts(target, kinds, rest, height)


def _can_be_split(target: AbstractTarget) -> bool:
    """Whether a fit needs only the log density of a target, and it is large."""
    return (
        target.has_gradient
        and target.structure.is_continuous
        and target.structure.size >= _FEWEST
        and not target.amortised
        and target.draw_data(host_key(0)) is None
        and not any(jax.tree_util.tree_leaves(target.trainable()))
    )


def _pairs(
    rng: np.random.Generator,
    points: np.ndarray,
    out: np.ndarray,
    modes: Sequence[Moments],
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of points; those near the modes among themselves and with the others."""
    one, other = np.array_split(points[: len(points) // 2 * 2], 2)
    out_one, out_other = np.array_split(out[: len(out) // 2 * 2], 2)
    one, other = np.concatenate([one, out_one]), np.concatenate([other, out_other])
    if not modes:
        return one, other
    chosen = [modes[i % len(modes)] for i in range(len(points))]
    means = np.stack([mode.mean for mode in chosen])
    # Modes that differ in one part only have the same mean in all others.
    spread = _NEAR * np.stack([mode.deviations for mode in chosen])
    near = means + spread * rng.normal(size=means.shape)
    ones = [one, near, near]
    return np.concatenate(ones), np.concatenate([other, rng.permutation(near), points])


def _are_exchangeable(
    rng: np.random.Generator,
    owner: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    density: Density,
) -> bool:
    """Whether a sum over two points stays the same if they exchange some parts."""
    one, other = pairs
    is_moved = (rng.uniform(size=(len(one), np.max(owner) + 1)) < 0.5)[:, owner]
    mixed = np.where(is_moved, other, one), np.where(is_moved, one, other)
    log_density = Evaluator(density, _BATCH)
    values = [np.asarray(log_density(x), np.float64) for x in (one, other, *mixed)]
    with np.errstate(invalid="ignore"):
        off = np.abs(values[0] + values[1] - values[2] - values[3])
    size = np.sum(np.abs(values), axis=0)
    return bool(np.all(off <= np.sqrt(density.rounding) * (1.0 + size)))


def _kinds(
    rng: np.random.Generator, owner: np.ndarray, rest: np.ndarray, density: Density
) -> tuple[np.ndarray, ...]:
    """Coordinates of all parts, those of equal functions together."""
    rows = [np.flatnonzero(owner == number) for number in range(np.max(owner) + 1)]
    kinds = []
    for size in sorted({len(row) for row in rows}):
        left = np.array([row for row in rows if len(row) == size])
        values = np.resize(_WIDTHS, _ALIKE)[:, None] * rng.normal(size=(_ALIKE, size))
        found = _gradients_of(values, left, rest, density)
        while len(left):
            is_alike = _are_alike(found, found[:1], density)
            is_alike[0] = True
            kinds.append(left[is_alike])
            left, found = left[~is_alike], found[~is_alike]
    return tuple(kinds)


def _gradients_of(
    values: np.ndarray, rows: np.ndarray, rest: np.ndarray, density: Density
) -> Float[np.ndarray, "m n k"]:
    """Gradients of each part at the same values, from one pass for all parts."""
    points = np.repeat(rest[None], len(values), axis=0)
    points[:, rows] = values[:, None, :]
    found = _gradients(jnp.asarray(points, density.dtype), density)
    return np.moveaxis(np.asarray(found, np.float64)[:, rows], 1, 0)


def _are_alike(found: np.ndarray, first: np.ndarray, density: Density) -> np.ndarray:
    tolerance = np.sqrt(density.rounding)
    close = np.abs(found - first) <= tolerance * (np.abs(found) + np.abs(first))
    both_bad = ~np.isfinite(found) & ~np.isfinite(first)
    return np.all(close | both_bad, axis=(1, 2))


@functools.partial(rarely_run, effort=0)
def _gradients(points: Float[Array, "n d"], density: Density) -> Any:
    return jax.vmap(density.gradient)(points)
