"""Parameters with a parameter in their scale, fitted in standardised coordinates.

In ``theta ~ normal(mu, tau)`` the width of ``theta`` changes with ``tau``, which no
normal guide follows. Standardised, ``(theta - mu) / tau``, it does not. The text of the
program only suggests where this may help: the change of coordinates is exact whatever
the text says.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float, Scalar

from softcvi.adapters._recentre import Prior
from softcvi.targets import Informed


@dataclass(frozen=True)
class Affine:
    """Numbers that are affine in some coordinates of the unconstrained vector.

    Attributes:
        positions: Where these are.
        slopes: For each number, its change with each of them.
        offsets: Each number where these are zero.
        uppers: Of logarithms, the upper bound of each coordinate's parameter; infinite
            for those without, whose logarithm is the coordinate itself.

    Example:
        >>> Affine((1,), ((2.0,),), (3.0,))(jnp.array([0.0, 5.0])).tolist()
        [13.0]
    """

    positions: tuple[int, ...]
    slopes: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    uppers: tuple[float, ...] | None = None

    def __call__(self, u: Float[Array, " d"]) -> Float[Array, " n"]:
        """The numbers."""
        features = u[np.array(self.positions, int)]
        if self.uppers is not None:
            upper = np.array(self.uppers)
            is_bound = np.isfinite(upper)
            log_upper = jnp.asarray(np.log(np.where(is_bound, upper, 1)), u.dtype)
            bound = jax.nn.log_sigmoid(features) + log_upper
            features = jnp.where(is_bound, bound, features)
        slopes = jnp.asarray(self.slopes, u.dtype)
        return slopes @ features + jnp.asarray(self.offsets, u.dtype)

    def plus(self, positions: np.ndarray, slopes: np.ndarray) -> "Affine":
        """The numbers with what they change by with more coordinates.

        Args:
            positions: Where these are.
            slopes: For each number, its change with each of them.
        """
        before = np.reshape(self.slopes, (len(self.offsets), len(self.positions)))
        return Affine(
            (*self.positions, *positions.tolist()),
            tuple(map(tuple, np.hstack([before, slopes]).tolist())),
            self.offsets,
        )


# Compared by identity: two large arrays need not be.
@dataclass(frozen=True, eq=False)
class Walk:
    """Members whose locations hold earlier members, as those of a random walk.

    Attributes:
        steps: From members to their distances from the part of their locations that is
            made of members: lower triangular, with ones on the diagonal.
        sums: The inverse.

    Example:
        >>> walk = Walk.of(np.array([[0.0, 0.0], [1.0, 0.0]]))
        >>> walk.steps.tolist(), walk.sums.tolist()
        ([[1.0, 0.0], [-1.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]])
    """

    steps: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, own: np.ndarray) -> "Walk":
        """From the change of each location with each member that comes before.

        Args:
            own: A strictly lower triangular matrix.
        """
        steps = np.eye(len(own)) - own
        sums = scipy.linalg.solve_triangular(steps, np.eye(len(own)), lower=True)
        return cls(steps, sums)


@dataclass(frozen=True)
class Standardised:
    """Positions in the unconstrained vector that are standardised by others.

    Attributes:
        name: The parameter.
        positions: Where it is.
        location: Its location: one for all, or one for each.
        log_scale: Logarithm of its scale, likewise.
        walk: How its members depend on each other, if they do; the location is then
            the part of it that does not.

    Example:
        >>> first, second = (Affine((i,), ((1.0,),), (0.0,)) for i in (0, 1))
        >>> each = Standardised("theta", (2, 3), first, second)
        >>> x, log_det = each.forward(jnp.array([5.0, jnp.log(2.0), 1.0, -1.0]))
        >>> x[2:].tolist(), bool(jnp.isclose(log_det, 2 * jnp.log(2.0)))
        ([7.0, 3.0], True)
    """

    name: str
    positions: tuple[int, ...]
    location: Affine
    log_scale: Affine
    walk: Walk | None = None

    def forward(
        self, u: Float[Array, " d"], data: Informed | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        """Stan's unconstrained vector from a standardised one, with log Jacobian."""
        at = np.array(self.positions)
        location, scale = self._given(u, data)
        x = location + scale * u[at]
        if self.walk is not None:
            x = jnp.asarray(self.walk.sums, u.dtype) @ x
        return u.at[at].set(x), jnp.sum(jnp.log(scale))

    def inverse(
        self, x: Float[Array, " d"], data: Informed | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        """The standardised vector from Stan's own, with log Jacobian."""
        at = np.array(self.positions)
        location, scale = self._given(x, data)
        own = x[at]
        if self.walk is not None:
            own = jnp.asarray(self.walk.steps, x.dtype) @ own
        return x.at[at].set((own - location) / scale), -jnp.sum(jnp.log(scale))

    def prior(self, x: Float[Array, " d"]) -> Prior:
        """Location and scale, given Stan's unconstrained vector."""
        location, scale = self.location(x), jnp.exp(self.log_scale(x))
        # Data about one member of a walk are about those near it, too: the walk is
        # standardised as a whole or not at all, as vectors with a covariance are.
        return Prior(location, scale, is_matrix=self.walk is not None)

    def _given(self, vector: Array, data: Informed | None) -> tuple[Array, Array]:
        location, scale, _ = self.prior(vector)
        if data is not None:
            location, scale = data.given(location, scale)
        shape = (len(self.positions),)
        both = jnp.broadcast_to(location, shape), jnp.broadcast_to(scale, shape)
        return both[0].astype(vector.dtype), both[1].astype(vector.dtype)
