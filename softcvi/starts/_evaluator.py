"""Log densities of any number of points."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from softcvi._compile import host_array, put, rarely_run
from softcvi.diagnostics import SearchEvidence
from softcvi.starts._base import Moments
from softcvi.starts._double import Density
from softcvi.targets._cost import cost_of

# Points side by side; the same everywhere, so that a target has one such program.
POINTS = 500
# Numbers that are handed to a program at once, and operations of one call of it.
_NUMBERS, _OPERATIONS = 200_000, 1e9
# Most numbers of the points that are remembered as infinitely dense.
_REMEMBERED = 2_000_000


@dataclasses.dataclass(eq=False)
class Evaluator:
    """Log densities of any number of points by one compiled program.

    Attributes:
        density: The density.
        size: Points that the program evaluates side by side.
        most: Batches of so many points that it evaluates one after the other, as
            calling a program takes longer than what a small density does in it.
        num_infinite: Points so far whose log density is plus infinity.
        infinite: These points, as many as there is room for.
    """

    density: Density
    size: int
    most: int = 1
    num_infinite: int = 0
    infinite: list[Float[np.ndarray, " d"]] = dataclasses.field(default_factory=list)

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
        joined = np.concatenate(values)
        self._remember(x[np.isposinf(joined)])
        return joined

    def _remember(self, points: Float[np.ndarray, "n d"]) -> None:
        room = _REMEMBERED // max(points.shape[1], 1) - len(self.infinite)
        self.num_infinite += len(points)
        self.infinite += list(points[: max(room, 0)])

    def with_infinite(
        self, search: SearchEvidence, modes: Sequence[Moments]
    ) -> SearchEvidence:
        """The evidence of a search, with the points whose log density is plus infinity.

        Args:
            search: The evidence without them.
            modes: What the search has found.
        """
        if not self.num_infinite:
            return search
        points = np.array(self.infinite)
        away = [np.max(np.abs(points - m.mean) / m.deviations, axis=1) for m in modes]
        nearest = float(np.min(away)) if len(points) and away else 0.0
        return search.with_infinite(self.num_infinite, nearest)


@rarely_run
def log_densities(
    x: Float[Array, "most size d"], batches: Int[ArrayLike, ""], density: Density
) -> Float[Array, "most size"]:
    """Log densities of the points of the first batches, one batch after the other."""

    def fill(i, values):
        return values.at[i].set(jax.vmap(density.value)(x[i]))

    return jax.lax.fori_loop(0, batches, fill, jnp.zeros(x.shape[:2], x.dtype))
