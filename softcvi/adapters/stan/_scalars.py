"""Scalar parameters of a program as functions of its unconstrained vector, in JAX."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# So far out that a parameter is at its bound in double precision, if it has one.
FAR = 300.0
_LARGE = 1e100


# Compared by identity, as arrays need not be.
@dataclass(frozen=True, eq=False)
class Scalars:
    """Numbers that are sums of simple functions of unconstrained coordinates.

    That covers parameters without bounds, with one or two of them, and those in order.

    Attributes:
        positions: The coordinates.
        offsets: Part of each number that does not change.
        free: For each number, its change with each coordinate itself.
        grown: Its change with the exponential of each.
        bounded: Its change with the logistic function of each.

    Example:
        >>> tau = Scalars.of([Term(0, "lower", low=2.0)])
        >>> tau.values(jnp.zeros(1)).tolist()
        [3.0]
    """

    positions: np.ndarray
    offsets: np.ndarray
    free: np.ndarray
    grown: np.ndarray
    bounded: np.ndarray

    @classmethod
    def of(cls, numbers: "list[Term]") -> "Scalars":
        """The numbers that some terms describe."""
        used = np.unique([at for each in numbers for at in each.positions]).astype(int)
        shape = (len(numbers), len(used))
        free, grown, bounded = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for row, each in enumerate(numbers):
            columns = np.searchsorted(used, each.positions)
            if each.kind in ("free", "ordered"):
                free[row, columns[0]] = 1.0
                grown[row, columns[1:]] = 1.0
            elif each.kind == "bounded":
                bounded[row, columns] = each.high - each.low
            else:
                grown[row, columns] = -1.0 if each.kind == "upper" else 1.0
        offsets = [e.high if e.kind == "upper" else e.low for e in numbers]
        return cls(used, np.array(offsets, float), free, grown, bounded)

    def values(self, u: Float[Array, " d"]) -> Float[Array, " n"]:
        """The numbers."""
        x = u[self.positions]
        # Coordinates of no exponential may be large.
        grown = jnp.exp(jnp.where(np.any(self.grown, axis=0), x, 0.0))
        out = jnp.asarray(self.offsets, x.dtype) + jnp.asarray(self.free, x.dtype) @ x
        out = out + jnp.asarray(self.grown, x.dtype) @ grown
        return out + jnp.asarray(self.bounded, x.dtype) @ jax.nn.sigmoid(x)

    def logs(self, u: Float[Array, " d"]) -> Float[Array, " n"]:
        """Logarithms of positive numbers, exact also where these are tiny."""
        x = u[self.positions]
        with np.errstate(divide="ignore"):
            parts = [np.log(part) for part in (self.offsets, self.grown, self.bounded)]
        offsets, grown, bounded = (jnp.asarray(part, x.dtype) for part in parts)
        terms = [offsets[:, None], grown + x, bounded + jax.nn.log_sigmoid(x)]
        return jax.nn.logsumexp(jnp.concatenate(terms, axis=1), axis=1)


@dataclass(frozen=True)
class Term:
    """How one scalar parameter depends on the unconstrained vector.

    Attributes:
        at: Its coordinate, or the first of those that it depends on.
        kind: ``free``; ``lower``, ``upper`` or ``bounded``; ``ordered`` and
            ``positive`` for members of vectors in order.
        low: Its lower bound.
        high: Its upper bound.
        count: Number of coordinates, of a member of a vector in order.

    Example:
        >>> Term(3, "ordered", count=2).positions
        [3, 4]
    """

    at: int
    kind: str
    low: float = 0.0
    high: float = 0.0
    count: int = 1

    @property
    def positions(self) -> list[int]:
        """Coordinates that it depends on."""
        return list(range(self.at, self.at + self.count))

    def value(self, points: np.ndarray) -> np.ndarray:
        """The scalar at unconstrained vectors, by rows, in NumPy."""
        own = points[:, self.positions]
        if self.kind == "free":
            return own[:, 0]
        if self.kind == "bounded":
            return self.low + (self.high - self.low) / (1 + np.exp(-own[:, 0]))
        if self.kind == "upper":
            return self.high - np.exp(own[:, 0])
        first = own[:, 0] if self.kind == "ordered" else np.exp(own[:, 0])
        return self.low + first + np.exp(own[:, 1:]).sum(1)

    @property
    def is_positive(self) -> bool:
        """Whether it has a logarithm at every point."""
        has_bound = self.kind in ("lower", "bounded") and self.low >= 0
        return has_bound or self.kind == "positive"


def terms(
    positions: tuple[int, ...], type_name: str, values: np.ndarray, points: np.ndarray
) -> list[Term] | None:
    """How the scalars of a parameter depend on its coordinates; None if not known.

    Args:
        positions: Its coordinates.
        type_name: Type in the program.
        values: Values, by rows, at the points; the last two are far out, with all
            coordinates very small and very large.
        points: Unconstrained vectors.

    Example:
        >>> points = np.array([[0.3], [-FAR], [FAR]])
        >>> terms((0,), "real", 1 + np.exp(points), points)
        [Term(at=0, kind='lower', low=1.0, high=0.0, count=1)]
    """
    if values.shape != (len(points), len(positions)):
        return None
    kind = {"ordered": "ordered", "positive_ordered": "positive"}.get(type_name)
    if kind is not None:
        found = [Term(positions[0], kind, count=k + 1) for k in range(len(positions))]
    else:
        found = [
            _of_bounds(at, *values[-2:, k].tolist()) for k, at in enumerate(positions)
        ]
    expected = np.stack([each.value(points[:-2]) for each in found], axis=1)
    return found if np.allclose(expected, values[:-2]) else None


def _of_bounds(at: int, first: float, last: float) -> Term:
    """A scalar by its values far out on either side."""
    if (first, last) == (-FAR, FAR):
        return Term(at, "free")
    if abs(last) < _LARGE:
        return Term(at, "bounded", low=_without_rest(first), high=last)
    if last > 0:
        return Term(at, "lower", low=_without_rest(first))
    return Term(at, "upper", high=first)


def _without_rest(low: float) -> float:
    """A bound without what the exponential function leaves of it."""
    return 0.0 if abs(low) < 1 / _LARGE else low
