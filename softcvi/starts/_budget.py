"""How much a search may cost, counted in elementary operations."""

import dataclasses

import numpy as np

# About a second on two cores if there is one place, and several where there are many.
_OF_ONE = 4e8
_OF_MANY = 1.5e10
_OF_RIDGES = 3e9
_PATHS = (32, 64)
_PATHS_OF_MANY = (64, 2048)
_ITERATIONS = 20
_LOOK = (1_000, 32_000)
_SCAN = (1_000, 96_000)


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
        fewest: Paths if there is one place.
        most: Paths if there are many.
        looked: Points around the known places.
        scanned: Points on lines from them.
        ridges: Elementary operations for ways between places.
    """

    fewest: int
    most: int
    looked: int
    scanned: int
    ridges: float = _OF_RIDGES

    @classmethod
    def of(cls, cost: int, dim: int) -> "Budget":
        """What a log density of this cost leaves room for.

        Args:
            cost: Elementary operations of one log density.
            dim: Number of parameters.

        Example:
            >>> Budget.of(1_000_000, 10).fewest, Budget.of(100, 10).fewest
            (32, 64)
        """
        per_path = path_cost(cost, dim)
        return cls(
            fewest=int(np.clip(_OF_ONE / per_path, *_PATHS)),
            most=int(np.clip(_OF_MANY / per_path, *_PATHS_OF_MANY)),
            looked=int(np.clip(_OF_ONE / cost, *_LOOK)),
            scanned=int(np.clip(_OF_ONE / cost, *_SCAN)),
        )
