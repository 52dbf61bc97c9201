"""Batches of Newton paths and of paths between places, and how many are affordable."""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from softcvi._compile import as_array, by_effort, rarely_run, rehearse
from softcvi.starts._double import Density
from softcvi.starts._evaluator import POINTS
from softcvi.starts._frugal import (
    ITERATIONS,
    PER_ITERATION,
    frugal_paths,
    iterations_per_hessian,
)
from softcvi.starts._modes import Ends
from softcvi.starts._newton import LocalNormal, newton_paths
from softcvi.starts._program_parts import ascend_terms, choices, terms_of
from softcvi.starts._ridges import along, ridge
from softcvi.targets._cost import cost_of, price_of

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
# Paths at once.
_BATCH = 16
# Elementary operations of a batch of Newton paths above which paths are frugal, and of
# a batch of those: about ten seconds on two cores.
_OF_BATCH = 1e11
_FEWEST_PATHS = 4
# Then as many log densities side by side, and as many weighted draws in a round: for
# each parameter, and at least.
_FEW_POINTS, _DRAWS_PER_PARAMETER, _FEWEST_DRAWS = 50, 25, 250
# Evaluations that a column of a Hessian takes: of a density in JAX, and of one outside
# of it by differences of gradients.
_PER_COLUMN, _PER_COLUMN_OF_CALLS = 3, 12


def path_cost(cost: int, dim: int, per_column: int = _PER_COLUMN) -> int:
    """Elementary operations of a Newton path of the usual length.

    Args:
        cost: Those of one log density.
        dim: Number of parameters.
        per_column: Log densities that a column of a Hessian is worth.
    """
    return _ITERATIONS * (per_column * dim + 50) * cost


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a search may spend on one posterior.

    Attributes:
        min_paths: Paths if there is one place.
        max_paths: Paths if there are many.
        num_draws: Points that are drawn around the known places.
        num_line_points: Points on lines from them.
        ridges: Elementary operations for paths between places.
        batch: Paths that are climbed at once.
        every: Iterations from one Hessian to the next; None for Newton paths, which
            have one in each.
        num_points: Log densities that are evaluated side by side.
        num_weighted: Weighted draws of a round; None for what suits a cheap density.
    """

    min_paths: int
    max_paths: int
    num_draws: int
    num_line_points: int
    ridges: float = _OF_RIDGES
    batch: int = _BATCH
    every: int | None = None
    num_points: int = POINTS
    num_weighted: int | None = None

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

    @classmethod
    def of_density(cls, density: Density) -> "Budget":
        """The budget of a density: of fewer and frugal paths where it is expensive.

        Args:
            density: The density.
        """
        target, program = density.target, density.program()
        dim, price = target.structure.size, price_of(program, target)
        is_called = target.operations_of_call is not None
        per_column = _PER_COLUMN_OF_CALLS if is_called else _PER_COLUMN
        budget = cls.of(cost_of(program), dim)
        if _BATCH * path_cost(price, dim, per_column) <= _OF_BATCH:
            return budget
        every = iterations_per_hessian(per_column * dim)
        per_path = ITERATIONS * (PER_ITERATION + per_column * dim / every) * price
        batch = int(np.clip(_OF_BATCH / per_path, _FEWEST_PATHS, _BATCH))
        return dataclasses.replace(
            budget,
            min_paths=2 * batch,
            max_paths=4 * batch,
            num_draws=int(np.clip(_OF_BATCH / price, _DRAWS[0], budget.num_draws)),
            num_line_points=_LINE_POINTS[0],
            ridges=0.0,
            batch=batch,
            every=every,
            num_points=_FEW_POINTS,
            num_weighted=max(_FEWEST_DRAWS, _DRAWS_PER_PARAMETER * dim),
        )


def prepare_climbs(density: Density, budget: Budget) -> None:
    """Begin to compile the first program of a search while its starts are chosen.

    Args:
        density: The density.
        budget: What the search may spend.
    """
    zeros = np.zeros((budget.batch, density.target.structure.size))
    rehearse(climb, density, zeros, 1, budget.every)


def climb(
    density: Density,
    starts: Float[np.ndarray, "b d"],
    count: int = 1,
    every: int | None = None,
) -> tuple[Ends, Float[np.ndarray, "m d"]]:
    """Where paths end, and starts of those that lead nowhere.

    Args:
        density: The density.
        starts: Where to begin.
        count: What each path counts for.
        every: Iterations from one Hessian to the next on frugal paths; None for Newton
            paths.
    """
    points = as_array(starts, density.dtype)
    if every is None:
        ascend = _ascend[0 if _is_little_work(density, len(starts)) else 1]
        found = ascend(points, density)
    else:
        found = _ascend_frugally(points, np.int32(every), density)
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


@rarely_run
def _ascend_frugally(
    starts: Float[Array, "b d"], every: Int[ArrayLike, ""], density: Density
) -> LocalNormal:
    return frugal_paths(density, starts, every)


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
