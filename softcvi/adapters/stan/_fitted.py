"""One value of the data, in the form in which Stan's JSON reader wants it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcvi.adapters.stan._stanc import Input

_LARGEST_INT = 2**31 - 1


def plain(value: Any) -> Any:
    """A value made of lists, numbers, strings and dicts alone.

    Args:
        value: Anything that NumPy reads; complex numbers become pairs.

    Example:
        >>> plain(np.array([True, False])), plain(1 - 2j)
        ([1, 0], [1.0, -2.0])
    """
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    if value is None or isinstance(value, str | int | float | bool):
        return int(value) if isinstance(value, bool) else value
    return plain(np.asarray(value).tolist())


def fitted(name: str, value: Any, kind: Input) -> Any:
    """A value with the type and the number of axes that the program declares.

    Args:
        name: Its name, for messages.
        value: What the user gave.
        kind: What the program declares.

    Raises:
        ValueError: If the value cannot be what the program declares.

    Example:
        >>> fitted("N", [3.0], Input("int", 0)), fitted("x", ["Inf"], Input("real", 1))
        (3, [inf])
    """
    value = plain(value)
    if isinstance(kind.type, tuple):
        return _tuple(name, value, kind.type, kind.dimensions)
    # A complex number is a pair, so that there is one axis more.
    axes = kind.dimensions + (kind.type == "complex")
    array = _with_axes(name, _array(name, value), axes)
    if kind.type == "int":
        return _whole(name, array).tolist()
    return array.tolist()


def _tuple(name: str, value: Any, parts: tuple[Input, ...], dimensions: int) -> Any:
    """JSON objects with the keys "1", "2" and so on, from these or from sequences."""
    if dimensions > 0:
        inner = Input(parts, dimensions - 1)
        return [fitted(f"{name}[{i + 1}]", v, inner) for i, v in enumerate(value)]
    if not isinstance(value, dict):
        sequence = value if isinstance(value, list) else [value]
        value = {str(i): part for i, part in enumerate(sequence, start=1)}
    if set(value) != {str(i + 1) for i in range(len(parts))}:
        raise ValueError(
            f"data: '{name}' is declared as a tuple of {len(parts)} parts; give a "
            f"Python tuple of that length, or a JSON object with the keys "
            f'"1" to "{len(parts)}".'
        )
    return {
        key: fitted(f"{name}.{key}", value[key], part)
        for key, part in zip(sorted(value, key=int), parts, strict=True)
    }


def _array(name: str, value: Any) -> np.ndarray:
    if _holds_none(value):
        raise ValueError(
            f"data: '{name}' holds missing values (null, None), which Stan does not "
            "have. Leave these rows out, or declare what is missing as parameters."
        )
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"data: '{name}' must be numbers in a rectangular array ({error}). Missing "
            "values have to be coded as numbers."
        ) from error


def _holds_none(value: Any) -> bool:
    if isinstance(value, list):
        return any(_holds_none(part) for part in value)
    return value is None


def _with_axes(name: str, array: np.ndarray, axes: int) -> np.ndarray:
    """The array with this number of axes, if that can be done without doubt."""
    if array.ndim == axes or array.size == 0:
        return array
    # R has no scalars and drops axes: a number may stand for an array that holds it.
    if array.size == 1:
        return array.reshape((1,) * axes)
    raise ValueError(
        f"data: '{name}' is declared with {_axes(axes)}; got an array of shape "
        f"{array.shape}, with {_axes(array.ndim)}."
    )


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def _whole(name: str, array: np.ndarray) -> np.ndarray:
    fractional = array[~(np.isfinite(array) & (array == np.round(array)))]
    if fractional.size:
        raise ValueError(
            f"data: '{name}' is declared as int, but holds other numbers, such as "
            f"{fractional.flat[0]}."
        )
    if array.size and np.max(np.abs(array)) > _LARGEST_INT:
        raise ValueError(
            f"data: '{name}' holds {np.max(np.abs(array)):.0f}, and integers of Stan "
            f"end at {_LARGEST_INT}. Declare it as real, or count in larger units."
        )
    return array.astype(np.int64)
