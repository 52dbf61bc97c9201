"""The Hessian of a log density, by few products where most of its entries are zero.

In models of time, space or groups most pairs of parameters share no term. So
columns that have no row in common share one product with a vector (Curtis, Powell and
Reid, 1974), and a Hessian of thousands of parameters takes a handful of products.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float

from softcvi._compile import rarely_run
from softcvi.starts._double import Density

# Products that are taken at a time.
_COLUMNS = 64
# A parameter that meets so many times more others than the middle one has a product of
# its own, as it would keep all others apart.
_MEETS_MANY = 4
# Columns share products where this leaves at most this share of them.
_WORTH = 0.25


class Hessians:
    """Hessians of a log density at one point after another.

    The first is taken column by column, and shows which entries are zero. Those that
    follow rely on it, and are checked by a product with a random vector: where that
    does not agree, the Hessian is taken column by column again.

    Args:
        density: The density.

    Example:
        >>> import jax.numpy as jnp, numpy as np, softcvi
        >>> from softcvi.starts._double import Density
        >>> target = softcvi.DensityTarget(lambda x: -jnp.sum(x**4), jnp.zeros(3))
        >>> hessians = Hessians(Density(target, widened=False))
        >>> [hessians.at(x * np.ones(3))[0][0, 0].item() for x in (1.0, 2.0)]
        [-12.0, -48.0]
    """

    def __init__(self, density: Density):
        self.density = density
        self._is_entry: np.ndarray | None = None
        self._sharing: _Sharing | None = None

    def num_products(self, size: int) -> int:
        """How many products with vectors a Hessian takes, by what is known so far.

        Args:
            size: Number of parameters.
        """
        return size if self._sharing is None else self._sharing.num_products

    def at(self, x: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
        """Hessian and gradient.

        Args:
            x: The point.
        """
        if self._sharing is not None:
            found = self._sharing.hessian(x, self.density)
            if found is not None:
                return found
        hessian, gradient = curvature(x, self.density)
        if not np.all(np.isfinite(hessian)):
            return hessian, gradient  # which entries are zero cannot be seen here
        is_entry = hessian != 0
        if self._is_entry is not None:
            is_entry |= self._is_entry
        self._is_entry = is_entry | is_entry.T
        self._sharing = _Sharing.of(self._is_entry)
        return hessian, gradient


class _Sharing:
    """Which columns share a product.

    Args:
        own: Columns with a product of their own.
        group: For every column the number of its product; those of ``own`` are last.
        rows: Rows of the entries outside of the columns and rows of ``own``.
        columns: Their columns.
    """

    def __init__(self, own, group, rows, columns):
        self.own, self.group, self.rows, self.columns = own, group, rows, columns

    @property
    def num_products(self) -> int:
        """Products of one Hessian, with the one that checks it."""
        return int(np.max(self.group)) + 2

    @classmethod
    def of(cls, is_entry: np.ndarray) -> "_Sharing | None":
        """Columns in groups, greedily; None where that saves little."""
        size = len(is_entry)
        meets = np.sum(is_entry, axis=0)
        is_own = meets > _MEETS_MANY * np.median(meets)
        own = np.flatnonzero(is_own)
        rows, columns = np.nonzero(is_entry & ~is_own & ~is_own[:, None])
        entries = scipy.sparse.csr_array(
            (np.ones(len(rows), np.int32), (rows, columns)), shape=is_entry.shape
        )
        together = scipy.sparse.csr_array(entries.T @ entries)
        group = np.full(size, -1)
        for column in np.flatnonzero(~is_own):
            near = together.indices[slice(*together.indptr[column : column + 2])]
            taken = set(group[near].tolist())
            free = 0
            while free in taken:
                free += 1
            if free + len(own) >= _WORTH * size:
                return None
            group[column] = free
        group[own] = np.max(group, initial=-1) + 1 + np.arange(len(own))
        return cls(own, group, rows, columns)

    def hessian(
        self, x: np.ndarray, density: Density
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Hessian and gradient; None if a product does not agree with the Hessian."""
        size, count = x.size, self.num_products - 1
        vectors = np.zeros((count + 1, size))
        vectors[self.group, np.arange(size)] = 1.0
        check = np.random.default_rng(0).normal(size=size)
        vectors[count] = check
        products, gradient = _products_with(vectors, x, density)
        if not np.all(np.isfinite(products)):
            # Where the density overflows it has no Hessian, however that is taken.
            return np.full((size, size), np.nan), gradient
        hessian = np.zeros((size, size))
        entries = products[self.group[self.columns], self.rows]
        hessian[self.rows, self.columns] = entries
        of_own = products[self.group[self.own]]
        hessian[:, self.own], hessian[self.own] = of_own.T, of_own
        off = np.abs(hessian @ check - products[count])
        sums = np.abs(hessian) @ np.abs(check)
        if not np.all(off <= np.sqrt(density.rounding) * sums):
            return None
        return hessian, gradient


def curvature(x: np.ndarray, density: Density) -> tuple[np.ndarray, np.ndarray]:
    """Hessian and gradient, column by column.

    Args:
        x: The point.
        density: The density.
    """
    return _products_with(np.eye(x.size), x, density)


def _products_with(
    vectors: np.ndarray, x: np.ndarray, density: Density
) -> tuple[np.ndarray, np.ndarray]:
    """Products of the Hessian with rows, some at a time, and the gradient."""
    point = jnp.asarray(x, density.dtype)
    found, gradient = [], np.zeros(0)
    for begin in range(0, len(vectors), _COLUMNS):
        some = vectors[begin : begin + _COLUMNS]
        padded = np.zeros((_COLUMNS, x.size))
        padded[: len(some)] = some
        out = _products(point, jnp.asarray(padded, point.dtype), density)
        gradient, products = (np.asarray(part, np.float64) for part in out)
        found.append(products[: len(some)])
    return np.concatenate(found), gradient


@rarely_run
def _products(
    x: Float[Array, " d"], vectors: Float[Array, "n d"], density: Density
) -> tuple[Float[Array, " d"], Float[Array, "n d"]]:
    both = jax.vmap(lambda v: density.gradient_and_product(x, v))(vectors)
    return both[0][0], both[1]
