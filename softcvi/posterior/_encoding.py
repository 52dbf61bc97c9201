"""Guides and spaces as plain JSON and arrays: no pickle, only known classes.

What is read back can only be built from modules and functions listed below, so that a
file from elsewhere cannot run code of its own.
"""

import dataclasses
import functools
import weakref
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.guides import MixtureGuide
from softcvi.posterior._names import found, name_of
from softcvi.targets import Structure

# Deeper than any guide; a file that nests deeper was not written by ``Encoder``.
_MAX_DEPTH = 60
_NUMERIC_KINDS = "biuf"


class Encoder:
    """Turns an object into JSON, collecting its arrays on the side."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def encode(self, value: Any, path: str) -> Any:
        """JSON form of a value; ``path`` names it in errors."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            self.arrays.append(np.asarray(value))
            return {"array": len(self.arrays) - 1}
        if isinstance(value, list | tuple):
            items = [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return {"list" if isinstance(value, list) else "tuple": items}
        if isinstance(value, dict):
            return {
                "dict": {k: self.encode(v, f"{path}.{k}") for k, v in value.items()}
            }
        if isinstance(value, jax.ShapeDtypeStruct):
            return {"struct": [list(value.shape), str(value.dtype)]}
        if isinstance(value, Structure):
            return {"structure": self.encode(value.like, path)}
        if isinstance(value, eqx.Module) or hasattr(type(value), "tree_flatten"):
            return self._encode_object(value, path)
        if callable(value):
            return {"function": _name_of(value, path)}
        raise ValueError(
            f"{path}: a {type(value).__name__} cannot be saved. Save the draws "
            "instead: posterior.to_arviz().to_netcdf(path)."
        )

    def _encode_object(self, value: Any, path: str) -> dict:
        cls = type(value)
        arguments = getattr(value, "rebuild_arguments", None)
        if arguments is not None:
            leaves = jax.tree_util.tree_leaves(eqx.filter(value, eqx.is_array))
            return {
                "rebuild": _name_of(cls, path),
                "arguments": self.encode(arguments, path),
                "leaves": self.encode(leaves, path),
            }
        if dataclasses.is_dataclass(cls):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(cls)}
        else:
            # NumPyro's transforms keep a weak reference to their inverse as a cache.
            fields = {
                k: v
                for k, v in vars(value).items()
                if not isinstance(v, weakref.ReferenceType)
            }
        encoded = {k: self.encode(v, f"{path}.{k}") for k, v in fields.items()}
        return {"object": _name_of(cls, path), "fields": encoded}


class Decoder:
    """Builds the object back from JSON and arrays.

    Nothing is allocated beyond the arrays of the file: each may be used once.
    """

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays: list[np.ndarray | None] = list(arrays)
        self.size = sum(array.size for array in arrays)

    def decode(self, node: Any, depth: int = 0) -> Any:
        """The value that a JSON node stands for."""
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise ValueError("a list without a kind")
            return node
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        kind = next(iter(node), None)
        content: Any = node.get(kind)
        if kind == "array":
            return jnp.asarray(self._take(content))
        if kind in ("list", "tuple"):
            items = [self.decode(item, depth + 1) for item in _checked(list, content)]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            items = _checked(dict, content).items()
            return {key: self.decode(item, depth + 1) for key, item in items}
        if kind == "struct":
            return _struct(content)
        if kind == "structure":
            return Structure(self.decode(content, depth + 1))
        if kind == "function":
            return found(content)
        if kind == "object":
            fields = _checked(dict, node.get("fields"))
            return self._build(_checked(type, found(content)), fields, depth + 1)
        if kind == "rebuild":
            return self._rebuild(_checked(type, found(content)), node, depth + 1)
        raise ValueError(f"unknown entry {kind!r}")

    def _take(self, index: Any) -> np.ndarray:
        index = _checked(int, index)
        if not 0 <= index < len(self.arrays):
            raise ValueError(f"array {index} is missing")
        array, self.arrays[index] = self.arrays[index], None
        if array is None:
            raise ValueError(f"array {index} is used twice")
        return array

    def _build(self, cls: type, nodes: dict, depth: int) -> Any:
        fields = {name: self.decode(node, depth) for name, node in nodes.items()}
        if cls is MixtureGuide and "components" in fields:
            # Files written before components of one kind were kept as one stack.
            return MixtureGuide(fields["components"], fields["logits"])
        known: dict | None = getattr(cls, "__dataclass_fields__", None)
        value: Any = object.__new__(cls)
        for name, item in fields.items():
            if name.startswith("__") or (known is not None and name not in known):
                raise ValueError(f"{cls.__name__} has no field {name!r}")
            object.__setattr__(value, name, item)
        for name, field in (known or {}).items():
            make = field.default_factory
            if name not in fields and make is not dataclasses.MISSING:
                # The file is older than the field.
                object.__setattr__(value, name, make())
        return value

    def _rebuild(self, cls: type, node: dict, depth: int) -> Any:
        if "rebuild_arguments" not in getattr(cls, "__dataclass_fields__", {}):
            raise ValueError(f"{cls!r} cannot be built from arguments")
        arguments = _checked(dict, self.decode(node.get("arguments"), depth))
        for name, value in arguments.items():
            # As many layers or units as there are stored numbers, at most.
            if isinstance(value, int) and not 0 <= value <= max(self.size, 1):
                raise ValueError(f"{name} is {value}, more than the file holds")
        leaves = _checked(list, self.decode(node.get("leaves"), depth))
        make = functools.partial(cls, **arguments, key=jax.random.key(0))
        # Shapes first: what the arguments ask for is not allocated before it is known
        # to be what the file holds.
        shapes = eqx.filter(eqx.filter_eval_shape(make), _is_struct)
        expected = [leaf.shape for leaf in jax.tree_util.tree_leaves(shapes)]
        if [leaf.shape for leaf in leaves] != expected:
            raise ValueError(f"arrays of {cls.__name__} do not fit its arguments")
        arrays, static = eqx.partition(make(), eqx.is_array)
        treedef = jax.tree_util.tree_structure(arrays)
        return eqx.combine(jax.tree_util.tree_unflatten(treedef, leaves), static)


def _checked(kind: type, value: Any) -> Any:
    """The value, if it is of the kind that must stand here."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{value!r:.40} where a {kind.__name__} is expected")
    return value


def _is_struct(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _struct(content: Any) -> jax.ShapeDtypeStruct:
    shape, name = _checked(list, content)
    dtype = np.dtype(_checked(str, name))
    if dtype.kind not in _NUMERIC_KINDS:
        raise ValueError(f"{name} is no kind of number")
    lengths = tuple(_checked(int, length) for length in _checked(list, shape))
    if any(length < 0 for length in lengths):
        raise ValueError(f"shape {lengths}")
    return jax.ShapeDtypeStruct(lengths, dtype)


def _name_of(thing: Any, path: str) -> str:
    name = name_of(thing)
    if name is None:
        raise ValueError(
            f"{path}: {getattr(thing, '__qualname__', thing)!r} cannot be saved, since "
            "only public parts of softcvi, FlowJAX, Equinox, JAX and NumPyro are read "
            "back. Use a guide from softcvi.guides, or save the draws: "
            "posterior.to_arviz().to_netcdf(path)."
        )
    return name
