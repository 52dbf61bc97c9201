"""Batches of Newton paths and of ways between places, as compiled programs."""

import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from softcvi._compile import as_array, rarely_run, rehearse
from softcvi.starts._double import Density, double_precision
from softcvi.starts._modes import Ends
from softcvi.starts._newton import LocalNormal, newton_paths
from softcvi.starts._ridges import along, ridge
from softcvi.starts._terms import ascend_terms, choices, terms_of

# Terms of a sum that are climbed one by one.
_TERMS = 128


def prepare_climbs(density: Density, batch: int) -> None:
    """Begin to compile what a search needs first, while it looks for where to begin.

    Args:
        density: The density.
        batch: Number of paths at once.
    """
    rehearse(climb, density, np.zeros((batch, density.target.structure.size)))


def climb(density: Density, starts: Float[np.ndarray, "b d"], count: int = 1) -> Ends:
    """Where Newton paths end, without those that reach no finite density.

    Args:
        density: The density.
        starts: Where to begin.
        count: What each path counts for.
    """
    found = _ascend(as_array(starts, density.dtype), density)
    return _usable(found, count)


def climb_terms(
    rng: np.random.Generator, density: Density, starts: Float[np.ndarray, "b d"]
) -> Iterator[Ends]:
    """The same on single terms of the sums in the log density, in batches.

    Args:
        rng: Random generator.
        density: The density.
        starts: Where to begin, as many as a batch has.
    """
    chosen = choices(rng, count_terms(density, starts[0]), _TERMS)
    points = as_array(starts, density.dtype)
    for begin in range(0, len(chosen), len(starts)):
        some = chosen[begin : begin + len(starts)]
        some = np.resize(some, (len(starts), some.shape[1]))
        ends = _usable(ascend_terms(points, jnp.asarray(some), density), 1)
        if len(ends.means):
            yield ends


def count_terms(density: Density, point: Float[np.ndarray, " d"]) -> tuple[int, ...]:
    """Number of terms of each sum in the log density that can be climbed alone.

    Args:
        density: The density.
        point: Any point with a finite density.
    """
    target = density.target
    own = jnp.result_type(*target.structure.dtypes)
    # In the model's own precision, as it cannot be traced in two.
    with double_precision(own == jnp.float64):
        particle = target.structure.unravel(np.asarray(point, own))
        return terms_of(target, particle)


def heights_between(
    density: Density, a: np.ndarray, b: np.ndarray, factors: np.ndarray
) -> Float[Array, "b n"]:
    """Log densities along the highest ways between pairs of points."""
    points = [as_array(leaf, density.dtype) for leaf in (a, b, factors)]
    return _on_ridges(*points, density)


def _usable(found: LocalNormal, count: int) -> Ends:
    means, covariances, elbos = (
        np.asarray(leaf, np.float64)
        for leaf in (found.mean, found.covariance, found.elbo)
    )
    is_usable = np.isfinite(elbos) & np.all(np.isfinite(means), axis=1)
    is_usable &= np.all(np.isfinite(covariances), axis=(1, 2))
    number = int(np.sum(is_usable))
    return Ends(
        means[is_usable],
        covariances[is_usable],
        elbos[is_usable],
        np.full(number, count),
        np.arange(number),
    )


@functools.partial(rarely_run, effort=0)
def _ascend(starts: Float[Array, "b d"], density: Density) -> LocalNormal:
    return newton_paths(density, starts)


@functools.partial(rarely_run, effort=0)
def _on_ridges(
    a: Float[Array, "b d"],
    b: Float[Array, "b d"],
    factors: Float[Array, "b d d"],
    density: Density,
) -> Float[Array, "b n"]:
    def heights(a, b, factor):
        way = ridge(density.value, density.gradient, a, b, factor)
        return along(density.value, way)

    return jax.vmap(heights)(a, b, factors)
