"""Parameters with a parameter in their scale, fitted in standardised coordinates.

In ``theta ~ normal(mu, tau)`` the width of ``theta`` changes with ``tau``, which no
normal guide follows. Standardised, ``(theta - mu) / tau``, it does not. The text of the
program only suggests where this may help: the change of coordinates is exact whatever
the text says.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float, Scalar

from softcvi.adapters._recentre import Prior
from softcvi.adapters.stan._scalars import Scalars
from softcvi.targets import Informed


# Compared by identity, as arrays need not be.
@dataclass(frozen=True, eq=False)
class Affine:
    """Numbers that are affine in scalar parameters or in their logarithms.

    Attributes:
        scalars: The parameters.
        slopes: For each number, its change with each of them and then with each of
            their products.
        offsets: Each number where these are zero.
        is_log: Whether it is logarithms of the parameters that they are affine in.
        pairs: Which products of two parameters they are affine in as well.

    Example:
        >>> from softcvi.adapters.stan._scalars import Term
        >>> mu = Scalars.of([Term(1, "free")])
        >>> Affine(mu, np.array([[2.0]]), np.array([3.0]))(jnp.array([0, 5.0])).tolist()
        [13.0]
    """

    scalars: Scalars
    slopes: np.ndarray
    offsets: np.ndarray
    is_log: bool = False
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), int))

    def __call__(self, u: Float[Array, " d"]) -> Float[Array, " n"]:
        """The numbers."""
        features = self.scalars.logs(u) if self.is_log else self.scalars.values(u)
        products = features[self.pairs[:, 0]] * features[self.pairs[:, 1]]
        features = jnp.concatenate([features, products])
        slopes = jnp.asarray(self.slopes, u.dtype)
        return slopes @ features + jnp.asarray(self.offsets, u.dtype)

    @property
    def positions(self) -> tuple[int, ...]:
        """Coordinates that they depend on."""
        return tuple(self.scalars.positions.tolist())


class AbstractWalk(ABC):
    """Members whose locations hold earlier members, as those of a random walk.

    Example:
        >>> AbstractWalk.__abstractmethods__ == {"members", "steps", "positions"}
        True
    """

    @property
    @abstractmethod
    def positions(self) -> tuple[int, ...]:
        """Coordinates that the dependence is made of."""

    @abstractmethod
    def members(
        self, u: Float[Array, " d"], steps: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """Members from their distances from what earlier members say of them."""

    @abstractmethod
    def steps(
        self, u: Float[Array, " d"], members: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """These distances from the members."""


# Compared by identity: two large arrays need not be.
@dataclass(frozen=True, eq=False)
class Walk(AbstractWalk):
    """Members that depend on earlier ones in a way that is known.

    Attributes:
        forward: From steps to members: lower triangular, with ones on the diagonal.
        backward: The inverse.

    Example:
        >>> walk = Walk.of(np.array([[0.0, 0.0], [1.0, 0.0]]))
        >>> walk.members(jnp.zeros(0), jnp.array([1.0, 2.0])).tolist()
        [1.0, 3.0]
    """

    forward: np.ndarray
    backward: np.ndarray

    @classmethod
    def of(cls, own: np.ndarray) -> "Walk":
        """From the change of each location with each member that comes before.

        Args:
            own: A strictly lower triangular matrix.
        """
        backward = np.eye(len(own)) - own
        forward = scipy.linalg.solve_triangular(backward, np.eye(len(own)), lower=True)
        return cls(forward, backward)

    @property
    def positions(self) -> tuple[int, ...]:
        return ()

    def members(self, u: Array, steps: Array) -> Array:
        return jnp.asarray(self.forward, steps.dtype) @ steps

    def steps(self, u: Array, members: Array) -> Array:
        return jnp.asarray(self.backward, members.dtype) @ members


@dataclass(frozen=True, eq=False)
class Recursion(AbstractWalk):
    """Members that depend on earlier ones by parameters, as autoregressions do.

    Attributes:
        changes: Change of a location with an earlier member, where there is any.
        rows: The members that these are the locations of.
        columns: The earlier members.
        size: Number of members.

    Example:
        >>> from softcvi.adapters.stan._scalars import Term
        >>> phi = Affine(Scalars.of([Term(0, "free")]), np.ones((1, 1)), np.zeros(1))
        >>> walk = Recursion(phi, np.array([1]), np.array([0]), 2)
        >>> walk.members(jnp.array([0.5]), jnp.array([1.0, 2.0])).tolist()
        [1.0, 2.5]
    """

    changes: Affine
    rows: np.ndarray
    columns: np.ndarray
    size: int

    @property
    def positions(self) -> tuple[int, ...]:
        return self.changes.positions

    def members(self, u: Array, steps: Array) -> Array:
        own = jnp.zeros((self.size, self.size), steps.dtype)
        own = own.at[self.rows, self.columns].set(self.changes(u).astype(steps.dtype))
        return jax.scipy.linalg.solve_triangular(
            jnp.eye(self.size, dtype=steps.dtype) - own,
            steps,
            lower=True,
            unit_diagonal=True,
        )

    def steps(self, u: Array, members: Array) -> Array:
        changes = self.changes(u).astype(members.dtype) * members[self.columns]
        return members.at[self.rows].add(-changes)


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
        >>> from softcvi.adapters.stan._scalars import Term
        >>> mu, tau = (Scalars.of([Term(*t)]) for t in ((0, "free"), (1, "lower")))
        >>> one, zero = np.ones((1, 1)), np.zeros(1)
        >>> first, second = Affine(mu, one, zero), Affine(tau, one, zero, is_log=True)
        >>> each = Standardised("theta", (2, 3), first, second)
        >>> x, log_det = each.forward(jnp.array([5.0, jnp.log(2.0), 1.0, -1.0]))
        >>> x[2:].tolist(), bool(jnp.isclose(log_det, 2 * jnp.log(2.0)))
        ([7.0, 3.0], True)
    """

    name: str
    positions: tuple[int, ...]
    location: Affine
    log_scale: Affine
    walk: AbstractWalk | None = None

    @property
    def parents(self) -> frozenset[int]:
        """Coordinates that its location, scale and walk depend on."""
        walk = () if self.walk is None else self.walk.positions
        return frozenset({*self.location.positions, *self.log_scale.positions, *walk})

    def forward(
        self, u: Float[Array, " d"], data: Informed | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        """Stan's unconstrained vector from a standardised one, with log Jacobian."""
        at = np.array(self.positions)
        location, scale = self._given(u, data)
        x = location + scale * u[at]
        if self.walk is not None:
            x = self.walk.members(u, x)
        return u.at[at].set(x), jnp.sum(jnp.log(scale))

    def inverse(
        self, x: Float[Array, " d"], data: Informed | None = None
    ) -> tuple[Float[Array, " d"], Scalar]:
        """The standardised vector from Stan's own, with log Jacobian."""
        at = np.array(self.positions)
        location, scale = self._given(x, data)
        own = x[at]
        if self.walk is not None:
            own = self.walk.steps(x, own)
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
