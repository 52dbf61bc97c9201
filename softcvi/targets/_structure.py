"""The structure of a particle: names, shapes and dtypes, and its flat vector form."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, Shaped


class Structure:
    """Hashable description of one particle, and the map to and from a flat vector.

    Args:
        like: A pytree of arrays or ``jax.ShapeDtypeStruct``, one particle.

    Example:
        >>> import jax.numpy as jnp
        >>> from softcvi.targets import Structure
        >>> structure = Structure({"mu": jnp.zeros(()), "z": jnp.zeros(3)})
        >>> structure.size, structure.names
        (4, ('mu', 'z'))
        >>> structure.unravel(jnp.arange(4.0))["z"].tolist()
        [1.0, 2.0, 3.0]
    """

    def __init__(self, like: PyTree):
        leaves, self.treedef = jax.tree_util.tree_flatten(like)
        if not leaves:
            raise ValueError(
                "like: a particle needs at least one array; got an empty pytree. "
                "Pass e.g. like={'theta': jnp.zeros(3)}."
            )
        paths = jax.tree_util.tree_flatten_with_path(like)[0]
        self.names = tuple(_name(path) for path, _ in paths)
        for name in self.names:
            _check_name(name)
        leaves = [_as_leaf(*pair) for pair in zip(self.names, leaves, strict=True)]
        self.shapes = tuple(tuple(leaf.shape) for leaf in leaves)
        self.dtypes = tuple(jnp.dtype(leaf.dtype) for leaf in leaves)

    @property
    def like(self) -> PyTree:
        """One particle as a pytree of ``jax.ShapeDtypeStruct``."""
        structs = [
            jax.ShapeDtypeStruct(s, d)
            for s, d in zip(self.shapes, self.dtypes, strict=True)
        ]
        return jax.tree_util.tree_unflatten(self.treedef, structs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of scalars in each leaf."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def size(self) -> int:
        """Number of scalars in a particle."""
        return sum(self.sizes)

    @property
    def is_continuous(self) -> bool:
        """Whether every leaf has a floating dtype."""
        return all(jnp.issubdtype(d, jnp.floating) for d in self.dtypes)

    @property
    def discrete_names(self) -> tuple[str, ...]:
        """Names of the leaves that are integer or boolean."""
        return tuple(
            name
            for name, dtype in zip(self.names, self.dtypes, strict=True)
            if not jnp.issubdtype(dtype, jnp.floating)
        )

    def ravel(self, particle: PyTree) -> Shaped[Array | np.ndarray, " size"]:
        """Join the leaves of one particle into a vector."""
        leaves = self.treedef.flatten_up_to(particle)
        if len(leaves) == 1:
            return jnp.reshape(leaves[0], -1)
        return jnp.concatenate([jnp.reshape(leaf, -1) for leaf in leaves])

    def unravel(self, vector: Shaped[Array | np.ndarray, " size"]) -> PyTree:
        """Split a vector into the leaves of one particle."""
        leaves, start = [], 0
        for shape, size in zip(self.shapes, self.sizes, strict=True):
            leaves.append(vector[start : start + size].reshape(shape))
            start += size
        return jax.tree_util.tree_unflatten(self.treedef, leaves)

    def difference(self, other: "Structure") -> str | None:
        """Say in words how another structure differs, or None if it does not."""
        mine, theirs = (
            dict(zip(s.names, s.shapes, strict=True)) for s in (self, other)
        )
        missing = [name for name in mine if name not in theirs]
        extra = [name for name in theirs if name not in mine]
        if missing or extra:
            parts = [f"missing {missing}"] * bool(missing)
            parts += [f"unknown {extra}"] * bool(extra)
            return " and ".join(parts)
        for name, shape in mine.items():
            if shape != theirs[name]:
                return f"'{name}' has shape {theirs[name]} where {shape} is needed"
        for name, mine_d, their_d in zip(
            self.names, self.dtypes, other.dtypes, strict=True
        ):
            if jnp.issubdtype(mine_d, jnp.floating) != jnp.issubdtype(
                their_d, jnp.floating
            ):
                return f"'{name}' is {their_d} where {mine_d} is needed"
        return None if self.treedef == other.treedef else "another pytree structure"

    def _identity(self) -> tuple:
        return (self.treedef, self.shapes, self.dtypes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        parts = [f"{n}: {s}" for n, s in zip(self.names, self.shapes, strict=True)]
        return f"Structure({', '.join(parts)})"


def _as_leaf(name: str, leaf: Any) -> Any:
    """A leaf with shape and dtype, of numbers that can be parameters."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        try:
            leaf = jnp.asarray(leaf)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"like: {name!r} is no array of numbers but {type(leaf).__name__}; "
                "pass e.g. like={'theta': jnp.zeros(3)}."
            ) from error
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        raise TypeError(
            f"like: {name!r} is complex; pass its real and its imaginary part as two "
            "arrays."
        )
    return leaf


def _check_name(name: str) -> None:
    """Refuse what no file can have, before a fit that could not be saved."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"like: the name {name!r} has half of a character (a lone surrogate), "
            "which cannot be written to files. Give it another name."
        ) from None


def _name(path: tuple) -> str:
    """A short readable name of a leaf: dict keys joined with dots."""
    keys = [
        str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path
    ]
    return ".".join(keys) if keys else "value"


def as_structure(like: PyTree | Structure) -> Structure:
    """Normalise what the user gave as ``like`` to a ``Structure``."""
    return like if isinstance(like, Structure) else Structure(like)
