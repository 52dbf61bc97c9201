"""Guides and spaces as plain JSON and arrays: no pickle, only known classes.

What is read back can only be built from modules and functions listed below, so that a
file from elsewhere cannot run code of its own.
"""

import dataclasses
import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from softcvi.guides import MixtureGuide
from softcvi.targets import Structure

_PACKAGES = ("softcvi", "flowjax", "paramax", "equinox", "jax", "jaxlib", "numpyro")
# Functions are called when a guide is used, so those of a file must be mathematics:
# whole packages also hold functions that read, write or evaluate.
_FUNCTION_MODULES = (
    "softcvi.guides",
    "softcvi.targets",
    "softcvi_experiments.tasks",
    "flowjax.bijections",
    "flowjax.distributions",
    "flowjax.utils",
    "paramax.utils",
    "equinox.nn",
    "jax._src.nn.functions",
    "jax._src.numpy.ufuncs",
    "jax._src.lax.lax",
)


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
    """Builds the object back from JSON and arrays."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays

    def decode(self, node: Any) -> Any:
        """The value that a JSON node stands for."""
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), None)
        content: Any = node.get(kind)
        if kind == "array":
            return jnp.asarray(self.arrays[content])
        if kind in ("list", "tuple"):
            items = [self.decode(item) for item in content]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {key: self.decode(item) for key, item in content.items()}
        if kind == "struct":
            return jax.ShapeDtypeStruct(tuple(content[0]), jnp.dtype(content[1]))
        if kind == "structure":
            return Structure(self.decode(content))
        if kind == "function":
            return _find(content)
        if kind == "object":
            return self._build(_find(content), node["fields"])
        if kind == "rebuild":
            return self._rebuild(_find(content), node)
        raise ValueError(f"unknown entry '{kind}'")

    def _build(self, cls: Callable, fields: dict) -> Any:
        if not isinstance(cls, type):
            raise ValueError(f"{cls!r} is not a class")
        decoded = {name: self.decode(node) for name, node in fields.items()}
        if cls is MixtureGuide and "components" in decoded:
            # Files written before components of one kind were kept as one stack.
            return MixtureGuide(decoded["components"], decoded["logits"])
        value: Any = object.__new__(cls)
        for name, item in decoded.items():
            object.__setattr__(value, name, item)
        return value

    def _rebuild(self, cls: Callable, node: dict) -> Any:
        if "rebuild_arguments" not in getattr(cls, "__dataclass_fields__", {}):
            raise ValueError(f"{cls!r} cannot be built from arguments")
        skeleton = cls(key=jax.random.key(0), **self.decode(node["arguments"]))
        arrays, static = eqx.partition(skeleton, eqx.is_array)
        treedef = jax.tree_util.tree_structure(arrays)
        leaves = self.decode(node["leaves"])
        return eqx.combine(jax.tree_util.tree_unflatten(treedef, leaves), static)


def _name_of(thing: Any, path: str) -> str:
    """``module:qualname`` of a class or function that can be found again."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", getattr(thing, "__name__", None))
    if "<" in str(name):
        # An anonymous function may still be bound to a name in its module.
        bound = vars(sys.modules.get(module or "", sys)).items()
        name = next((n for n, value in bound if value is thing), name)
    label = f"{module}:{name}"
    try:
        found = _find(label)
    except (ValueError, ImportError, AttributeError):
        found = None
    if found is not thing:
        raise ValueError(
            f"{path}: {name!r} cannot be saved, because only known parts of "
            f"{', '.join(_PACKAGES)} are read back. Use a guide from softcvi.guides, "
            "or save the draws: posterior.to_arviz().to_netcdf(path)."
        )
    return label


def _find(label: str) -> Any:
    module, _, name = label.partition(":")
    if module.split(".")[0] not in _PACKAGES:
        raise ValueError(f"{label} is not from a known package")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    # A module's attributes include what it imported: look at where it was made.
    home = getattr(found, "__module__", None) or ""
    if isinstance(found, type):
        known = home.split(".")[0] in _PACKAGES and _is_pytree(found)
    else:
        known = any(f"{home}.".startswith(f"{m}.") for m in _FUNCTION_MODULES)
    if not known:
        raise ValueError(f"{label} is not a known class or function")
    return found


def _is_pytree(cls: type) -> bool:
    """Whether objects of a class are plain containers of arrays and settings."""
    return issubclass(cls, eqx.Module) or hasattr(cls, "tree_flatten")
