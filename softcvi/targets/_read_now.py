"""Functions whose variables have changed since they were traced.

JAX keeps what it has traced by the identity of a function. A log density that reads a
global variable would give the first answer again after that variable was changed.
"""

import hashlib
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

# Larger arrays of NumPy are told apart as objects only, not by their content.
_MOST_BYTES = 2**24
# So are containers of more items, or deeper inside of others.
_MOST_ITEMS, _DEEPEST = 1_000, 3
_PLAIN = (bool, int, float, complex, str, bytes, type(None))

# Of every function, what it read when it was last used, and under which identity.
_known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def as_read_now(function: Callable) -> Callable:
    """A function under an identity of its own for the values that it reads now.

    Args:
        function: Any callable. Of a function of Python the global variables, those of
            the functions around it, and the functions that it calls are looked at.

    Returns:
        The function, or a copy of it if a value has changed since the last call.

    Example:
        >>> scale = 1.0
        >>> def log_prob(x):
        ...     return -0.5 * (x / scale) ** 2
        >>> as_read_now(log_prob) is log_prob
        True
        >>> scale = 2.0
        >>> as_read_now(log_prob) is log_prob
        False
    """
    if not isinstance(function, types.FunctionType):
        return function
    reads = [_comparable(v) for v in _values(function, set()) if v is not function]
    before = _known.get(function)
    if before is None:
        # Not the function itself, which would then never be forgotten.
        _known[function] = reads, None
    elif before[0] != reads:
        _known[function] = reads, _copy(function)
    current = _known[function][1]
    return function if current is None else current


class _Object:
    """What is compared as an object, and not by its value."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Object) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


def _comparable(value: Any, depth: int = 0) -> Any:
    """Equal to that of another value if a function cannot tell both apart."""
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, jax.core.Tracer):
        return id(value)  # not to be held beyond its program
    is_numeric = isinstance(value, np.ndarray) and value.dtype.kind in "biufc"
    if is_numeric and value.nbytes <= _MOST_BYTES:
        return value.shape, value.dtype.str, hashlib.blake2b(value.tobytes()).digest()
    is_container = isinstance(value, (list, tuple, dict))
    if not is_container or len(value) > _MOST_ITEMS or depth > _DEEPEST:
        return _Object(value)
    parts = value.items() if isinstance(value, dict) else value
    return type(value), tuple(_comparable(part, depth + 1) for part in parts)


def _values(function: types.FunctionType, seen: set[int]) -> Iterator[Any]:
    """Values of the names that a function reads, and those that it calls."""
    seen.add(id(function))
    found = [value for cell in function.__closure__ or () for value in _in_cell(cell)]
    names = sorted(set(_names(function.__code__)))
    found += [function.__globals__[n] for n in names if n in function.__globals__]
    for value in found:
        yield value
        # Functions of other modules are not the user's to change.
        is_near = getattr(value, "__globals__", None) is function.__globals__
        if isinstance(value, types.FunctionType) and is_near and id(value) not in seen:
            yield from _values(value, seen)


def _in_cell(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # the variable is set later
        return []


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _copy(function: types.FunctionType) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__doc__, copy.__qualname__ = function.__doc__, function.__qualname__
    copy.__module__ = function.__module__
    return copy
