"""What every engine offers: one Stan program with its data, evaluated row by row."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# Rows of unconstrained parameters, an array of doubles of shape (n, d).
Rows = np.ndarray
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class AbstractProgram(ABC):
    """A compiled Stan program with its data, on the unconstrained scale.

    Everything is in double precision, and any thread may call.

    Attributes:
        size: Number of unconstrained parameters.
        names: Names of all scalars that ``constrain`` returns, such as ``beta.1.2``,
            for parameters, transformed parameters and generated quantities.
        rejections: Points evaluated so far at which Stan refused to give a density.
        last_rejection: What Stan said at the last of them.
        operations: What a log density takes, counted and not timed; None if unknown.

    Example:
        >>> import numpy as np
        >>> from softcvi.adapters.stan import AbstractProgram
        >>> class Normal(AbstractProgram):
        ...     size = 1
        ...     names = (("mu",), (), ())
        ...
        ...     def log_density(self, rows):
        ...         return -0.5 * rows[:, 0] ** 2
        ...
        ...     def log_density_and_gradient(self, rows):
        ...         return self.log_density(rows), -rows
        ...
        ...     def constrain(self, rows, seeds):
        ...         return rows
        ...
        ...     def unconstrain(self, parameters):
        ...         return parameters
        >>> Normal().log_density(np.ones((2, 1))).tolist()
        [-0.5, -0.5]
    """

    size: int
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    rejections: int = 0
    last_rejection: str = ""
    operations: int | None = None

    @abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Log densities with Jacobian and constants; minus infinity if rejected."""

    @abstractmethod
    def log_density_and_gradient(self, rows: Rows) -> tuple[np.ndarray, Rows]:
        """Log densities and their gradients, which are zero where Stan rejects."""

    @abstractmethod
    def constrain(self, rows: Rows, seeds: np.ndarray) -> np.ndarray:
        """All values in the order of ``names``; NaN from the block where Stan fails.

        Random generated quantities depend on the row and its seed alone.
        """

    @abstractmethod
    def unconstrain(self, parameters: np.ndarray) -> Rows:
        """Unconstrained vectors from rows of parameters; NaN where Stan fails."""


def as_rejected(values: np.ndarray, gradients: Rows | None) -> int:
    """Points at the edge of double precision, made harmless in place.

    An infinite density, as at the pole of a scale, would take all the weight there is;
    it is a rejected point. A gradient that is not a number at a point with a density is
    none: zero, as Stan's own at rejected points.

    Args:
        values: Log densities.
        gradients: Their gradients, if they were asked for.

    Returns:
        Number of points that are rejected now and were not before.

    Example:
        >>> values, gradients = np.array([0.0, np.inf]), np.array([[np.nan], [1.0]])
        >>> as_rejected(values, gradients), values.tolist(), gradients.tolist()
        (1, [0.0, -inf], [[0.0], [0.0]])
    """
    infinite = np.isposinf(values)
    values[infinite] = -np.inf
    if gradients is not None:
        gradients[infinite | ~np.isfinite(gradients).all(axis=1)] = 0.0
    return int(infinite.sum())


class Layout:
    """From the flat names of a program to named arrays with shapes.

    Args:
        names: Names such as ``beta.1.2``, in the order of the values. Tuples and
            complex numbers have suffixes, which stay in the name.

    Example:
        >>> import numpy as np
        >>> layout = Layout(["mu", "m.1.1", "m.2.1", "m.1.2", "m.2.2"])
        >>> layout.shapes
        (('mu', ()), ('m', (2, 2)))
        >>> layout.split(np.arange(5.0))["m"].tolist()
        [[1.0, 3.0], [2.0, 4.0]]
    """

    def __init__(self, names: Sequence[str]):
        entries: dict[str, list[tuple[tuple[int, ...], int]]] = {}
        for position, full in enumerate(names):
            parts = full.split(".")
            index = tuple(int(part) for part in parts if part.isdigit())
            name = ".".join(part for part in parts if not part.isdigit())
            entries.setdefault(name, []).append((index, position))
        self._parts = {}
        for name, found in entries.items():
            indices = np.array([index for index, _ in found], int)
            shape = tuple(int(n) for n in indices.max(axis=0))
            positions = np.zeros(shape, int)
            # Stan lists matrices by column and arrays by row: the names tell.
            for index, position in found:
                positions[tuple(i - 1 for i in index)] = position
            self._parts[name] = positions

    @property
    def shapes(self) -> Shapes:
        """Name and shape of every variable."""
        return tuple((name, part.shape) for name, part in self._parts.items())

    def split(self, values):
        """Named arrays from flat values, on the last axis; NumPy or JAX."""
        return {name: values[..., part] for name, part in self._parts.items()}

    def join(self, values: Mapping[str, Array]) -> Array:
        """Flat values of one draw, from named JAX arrays."""
        listed = [jnp.reshape(values[name], -1) for name in self._parts]
        return jnp.concatenate(listed)[np.argsort(self._positions())]

    def join_rows(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Flat values of many draws, from named NumPy arrays with a leading axis."""
        parts = [values[name] for name in self._parts]
        listed = [part.reshape(len(part), -1) for part in parts]
        return np.concatenate(listed, axis=1)[:, np.argsort(self._positions())]

    def _positions(self) -> np.ndarray:
        return np.concatenate([part.ravel() for part in self._parts.values()])
