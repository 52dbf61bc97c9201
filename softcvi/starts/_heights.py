"""Log densities of a search, in which rounding errors are no density."""

import dataclasses
import functools

import equinox as eqx
import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from softcvi._compile import put, rarely_run
from softcvi.starts._double import CANNOT_EVALUATE, Density
from softcvi.starts._evaluator import Evaluator
from softcvi.starts._modes import Ends
from softcvi.targets._rounding import NATS, are_errors

# Only what is higher than all known places by so many nats is looked at: errors are
# huge, and nothing else is as high but a place that was not known.
_HIGHER = 1.0
# Of places, those that are this much higher than the lowest: if they are no errors, it
# has no mass.
_NO_MASS = 30.0
# An error is smaller than this share of what a height is above a known one.
_SURE = 0.1
# Points side by side in a search, which has few to look at, and ways to round each.
_FEW, _SEEDS = 16, np.arange(4.0)


@dataclasses.dataclass(eq=False)
class Roundings:
    """Which log densities are rounding errors.

    Attributes:
        rng: Random generator.
        evaluate: The log density.
        at_once: Points side by side.
    """

    rng: np.random.Generator
    evaluate: Evaluator
    at_once: int = _FEW

    def are_errors(
        self,
        points: Float[np.ndarray, "n d"],
        heights: Float[np.ndarray, " n"],
        nats: Float[ArrayLike, "*n"] = NATS,
    ) -> Bool[np.ndarray, " n"]:
        """Where other roundings change them, or else points that are next to them.

        Args:
            points: Where to look.
            heights: Log densities there.
            nats: Difference from which on it counts, of each.
        """
        if not len(points):
            return np.zeros(0, bool)
        density = self.evaluate.density
        if not self._can_shake:
            found = self.rng, self.evaluate, points, heights
            return are_errors(*found, density.rounding, nats)
        others = []
        for begin in range(0, len(points), self.at_once):
            some = points[begin : begin + self.at_once].astype(density.dtype)
            x = put(np.resize(some, (self.at_once, points.shape[1])))
            others.append(np.asarray(_shaken(x, put(_SEEDS), density), np.float64))
        with np.errstate(invalid="ignore"):  # between infinities
            apart = np.abs(np.concatenate(others)[: len(points)] - heights[:, None])
        return ~np.all(apart < np.reshape(nats, (-1, 1)), axis=1)

    @functools.cached_property
    def _can_shake(self) -> bool:
        """Whether the density is in double precision, and all of its program JAX's."""
        density = self.evaluate.density
        if density.dtype != np.float64:
            return False
        x = jax.ShapeDtypeStruct((density.target.structure.size,), density.dtype)
        try:
            jax.eval_shape(density.shaken, x, 0.0)
        except CANNOT_EVALUATE:
            return False
        return True


@dataclasses.dataclass(eq=False)
class WithoutErrors:
    """Log densities that are minus infinity where they are high by rounding errors.

    One such point would outweigh a whole posterior.

    Attributes:
        evaluate: The log density.
        roundings: What tells its errors.
        top: Height of the highest point that is known to be no error; nothing is
            looked at as long as there is none.
    """

    evaluate: Evaluator
    roundings: Roundings
    top: float = np.inf

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        heights = self.evaluate(x)
        high = np.flatnonzero((heights > self.top + _HIGHER) & (heights < np.inf))
        is_error = self._are_errors(x[high], heights[high], self.top)
        heights[high[is_error]] = -np.inf
        self.top = max([self.top, *heights[high[~is_error]]])
        return heights

    def places(self, ends: Ends) -> Ends:
        """The ends of paths that are not high by rounding errors.

        Args:
            ends: Where all paths so far have ended.
        """
        heights = self.evaluate(ends.means)
        is_finite = np.isfinite(heights)
        if not np.any(is_finite):
            return ends
        lowest = np.min(heights[is_finite])
        high = np.flatnonzero(heights > lowest + _NO_MASS)
        are_places = np.ones(len(heights), bool)
        are_places[high] = ~self._are_errors(ends.means[high], heights[high], lowest)
        self.top = float(np.max(heights[are_places & is_finite]))
        ends, heights = ends.among(are_places), heights[are_places]
        # No normal is higher on average than all places: its draws have met errors.
        dim = ends.means.shape[1]
        volumes = 0.5 * np.linalg.slogdet(ends.covariances)[1]
        volumes += 0.5 * dim * np.log(2 * np.pi)
        is_above = ends.elbos - volumes > self.top + _NO_MASS
        elbos = np.where(is_above, heights + volumes, ends.elbos)
        return eqx.tree_at(lambda e: e.elbos, ends, elbos)

    def _are_errors(
        self,
        points: Float[np.ndarray, "n d"],
        heights: Float[np.ndarray, " n"],
        known: float,
    ) -> Bool[np.ndarray, " n"]:
        """Where errors are so large that it may not be higher than a known height.

        On exponential walls heights are as large as their differences, without digits.
        """
        nats = np.maximum(NATS, _SURE * (heights - known))
        return self.roundings.are_errors(points, heights, nats)


@functools.partial(rarely_run, effort=0)
def _shaken(
    x: Float[Array, "n d"], seeds: Float[Array, " m"], density: Density
) -> Float[Array, "n m"]:
    def one(x):
        return jax.vmap(lambda seed: density.shaken(x, seed))(seeds)

    return jax.vmap(one)(x)
