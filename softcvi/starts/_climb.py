"""Batches of Newton paths and of paths between places, and how many are affordable."""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from softcvi._compile import as_array, by_effort, rarely_run, rehearse
from softcvi.starts._double import Density
from softcvi.starts._modes import Ends
from softcvi.starts._newton import LocalNormal, newton_paths
from softcvi.starts._program_parts import ascend_terms, choices, terms_of
from softcvi.starts._ridges import along, ridge
from softcvi.targets._cost import cost_of

# A batch of paths with fewer elementary operations is compiled with little
# optimisation. At 42 parameters and 6,000 operations both ways take equally long; at 84
# and 26,000 full optimisation takes a third of the time (JAX 0.9.2, two cores).
_LITTLE_WORK = 3e8
# Most terms that are climbed one by one.
_TERMS = 128
# Elementary operations of a search: about a second on two cores if there is one place,
# and several where there are many.
_OF_ONE = 4e8
_OF_MANY = 1.5e10
_OF_RIDGES = 3e9
_PATHS = (32, 64)
_PATHS_OF_MANY = (64, 2048)
_ITERATIONS = 20
_DRAWS = (1_000, 32_000)
_LINE_POINTS = (1_000, 96_000)


def path_cost(cost: int, dim: int) -> int:
    """Elementary operations of a Newton path of the usual length.

    Args:
        cost: Those of one log density.
        dim: Number of parameters.
    """
    return _ITERATIONS * (3 * dim + 50) * cost


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a search may spend on one posterior.

    Attributes:
        min_paths: Paths if there is one place.
        max_paths: Paths if there are many.
        num_draws: Points that are drawn around the known places.
        num_line_points: Points on lines from them.
        ridges: Elementary operations for paths between places.
    """

    min_paths: int
    max_paths: int
    num_draws: int
    num_line_points: int
    ridges: float = _OF_RIDGES

    @classmethod
    def of(cls, cost: int, dim: int) -> "Budget":
        """The budget of a log density of this cost.

        Args:
            cost: Elementary operations of one log density.
            dim: Number of parameters.

        Example:
            >>> Budget.of(1_000_000, 10).min_paths, Budget.of(100, 10).min_paths
            (32, 64)
        """
        per_path = path_cost(cost, dim)
        return cls(
            min_paths=int(np.clip(_OF_ONE / per_path, *_PATHS)),
            max_paths=int(np.clip(_OF_MANY / per_path, *_PATHS_OF_MANY)),
            num_draws=int(np.clip(_OF_ONE / cost, *_DRAWS)),
            num_line_points=int(np.clip(_OF_ONE / cost, *_LINE_POINTS)),
        )


def prepare_climbs(density: Density, batch: int) -> None:
    """Begin to compile the first program of a search while its starts are chosen.

    Args:
        density: The density.
        batch: Number of paths at once.
    """
    rehearse(climb, density, np.zeros((batch, density.target.structure.size)))


def climb(
    density: Density, starts: Float[np.ndarray, "b d"], count: int = 1
) -> tuple[Ends, Float[np.ndarray, "m d"]]:
    """Where Newton paths end, and starts of those that lead nowhere.

    Args:
        density: The density.
        starts: Where to begin.
        count: What each path counts for.
    """
    ascend = _ascend[0 if _is_little_work(density, len(starts)) else 1]
    found = ascend(as_array(starts, density.dtype), density)
    ends, is_usable = _usable(found, count)
    return ends, starts[~is_usable]


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
        ends, _ = _usable(ascend_terms(points, jnp.asarray(some), density), 1)
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
    with density.own_context():
        particle = target.structure.unravel(np.asarray(point, own))
        return terms_of(target, particle)


def heights_between(
    density: Density, a: np.ndarray, b: np.ndarray, factors: np.ndarray
) -> Float[Array, "b n"]:
    """Log densities along the highest paths between pairs of points."""
    points = [as_array(leaf, density.dtype) for leaf in (a, b, factors)]
    return _on_ridges(*points, density)


def _usable(found: LocalNormal, count: int) -> tuple[Ends, np.ndarray]:
    means, covariances, elbos = (
        np.asarray(leaf, np.float64)
        for leaf in (found.mean, found.covariance, found.elbo)
    )
    is_usable = np.isfinite(elbos) & np.all(np.isfinite(means), axis=1)
    is_usable &= np.all(np.isfinite(covariances), axis=(1, 2))
    number = int(np.sum(is_usable))
    ends = Ends(
        means[is_usable],
        covariances[is_usable],
        elbos[is_usable],
        np.full(number, count),
        np.arange(number),
    )
    return ends, is_usable


def _is_little_work(density: Density, batch: int) -> bool:
    """Whether a batch of paths takes less time than full optimisation would."""
    size = density.target.structure.size
    return batch * path_cost(cost_of(density.program()), size) < _LITTLE_WORK


def _newton_paths(starts: Float[Array, "b d"], density: Density) -> LocalNormal:
    return newton_paths(density, starts)


_ascend = by_effort(_newton_paths)


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
