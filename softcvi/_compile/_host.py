"""Small work on the host, for which JAX would compile a program each time."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray, PyTree

from softcvi._compile._generator import threefry_rounds
from softcvi._compile._switch import is_plain

_THREEFRY = "threefry2x32"
_LARGEST_WORD = 2**32


def as_array(values: Any, dtype: Any = float) -> Array:
    """An array on the device, converted to its dtype by NumPy.

    Args:
        values: Anything that NumPy can read; traced values are converted by JAX.
        dtype: Of the array; by default the default float.

    Example:
        >>> import numpy as np
        >>> as_array(np.arange(3), np.float32).dtype.name
        'float32'
    """
    if is_plain() or isinstance(values, jax.core.Tracer):
        return jnp.asarray(values, dtype)
    return put(np.asarray(values, jnp.result_type(dtype)))


def put(values: np.ndarray) -> Array:
    """An array on the device, in its own precision or single.

    Newer versions of JAX compile a program for every shape in ``jnp.asarray``.

    Args:
        values: An array of the host.

    Example:
        >>> import numpy as np
        >>> put(np.arange(3)).shape
        (3,)
    """
    return jax.device_put(values)


def host_stack(arrays: Sequence[Array]) -> Array:
    """``jnp.stack``, by NumPy.

    Args:
        arrays: Arrays of one shape and dtype; traced ones are stacked by JAX.

    Example:
        >>> host_stack([jnp.ones(2), jnp.zeros(2)]).shape
        (2, 2)
    """
    if not all(map(_is_here, arrays)):
        return jnp.stack(arrays)
    return put(np.stack([np.asarray(array) for array in arrays]))


def host_ravel(tree: PyTree) -> Array:
    """All numbers of a tree in one vector, in the order of ``ravel_pytree``.

    Args:
        tree: Arrays of one dtype; others, and traced ones, are left to JAX.

    Example:
        >>> host_ravel({"a": jnp.ones(2), "b": jnp.zeros((2, 2))}).shape
        (6,)
    """
    leaves = jax.tree_util.tree_leaves(tree)
    if not _are_alike(leaves):
        return ravel_pytree(tree)[0]
    return put(np.concatenate([np.ravel(leaf) for leaf in leaves]))


def host_unravel(vector: Array, like: PyTree) -> PyTree:
    """The opposite of ``host_ravel``.

    Args:
        vector: The numbers.
        like: A tree of the shapes that are asked for.

    Example:
        >>> tree = {"a": jnp.ones(2), "b": jnp.zeros((2, 2))}
        >>> host_unravel(host_ravel(tree), tree)["b"].shape
        (2, 2)
    """
    leaves, treedef = jax.tree_util.tree_flatten(like)
    if not _are_alike([vector, *leaves]):
        return ravel_pytree(like)[1](vector)
    bounds = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(np.asarray(vector), bounds)
    pairs = zip(parts, leaves, strict=True)
    new = [put(part.reshape(leaf.shape)) for part, leaf in pairs]
    return jax.tree_util.tree_unflatten(treedef, new)


def _are_alike(leaves: Sequence[Any]) -> bool:
    """Whether there are arrays, all on this host and of one dtype."""
    is_here = bool(leaves) and all(map(_is_here, leaves))
    return is_here and len({leaf.dtype for leaf in leaves}) == 1


def _is_here(array: Any) -> bool:
    """Whether NumPy can read an array."""
    return (
        not is_plain()
        and isinstance(array, jax.Array)
        and not isinstance(array, jax.core.Tracer)
        and array.is_fully_addressable
        and not jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    )


def host_key(seed: int) -> PRNGKeyArray:
    """``jax.random.key`` of a small number.

    Args:
        seed: At least 0, below 2**32.

    Example:
        >>> import jax
        >>> bool(host_key(3) == jax.random.key(3))
        True
    """
    is_default = jax.config.jax_default_prng_impl == _THREEFRY
    if is_plain() or not is_default or not 0 <= seed < _LARGEST_WORD:
        return jax.random.key(seed)
    return jax.random.wrap_key_data(np.array([0, seed], np.uint32), impl=_THREEFRY)


def host_split(key: PRNGKeyArray, num: int = 2) -> list[PRNGKeyArray]:
    """``jax.random.split``, as a list of keys.

    Args:
        key: Random key.
        num: How many.

    Example:
        >>> import jax
        >>> key = jax.random.key(0)
        >>> bool(host_split(key)[1] == jax.random.split(key)[1])
        True
    """
    if not _can_be_hashed(key):
        return list(jax.random.split(key, num))
    counts = np.stack([np.zeros(num, np.uint32), np.arange(num, dtype=np.uint32)])
    return [_wrapped(words) for words in _threefry(key, counts).T]


def host_fold_in(key: PRNGKeyArray, number: int) -> PRNGKeyArray:
    """``jax.random.fold_in``.

    Args:
        key: Random key.
        number: At least 0, below 2**32.

    Example:
        >>> import jax
        >>> key = jax.random.key(0)
        >>> bool(host_fold_in(key, 7) == jax.random.fold_in(key, 7))
        True
    """
    if not _can_be_hashed(key) or not 0 <= number < _LARGEST_WORD:
        return jax.random.fold_in(key, number)
    return _wrapped(_threefry(key, np.array([[0], [number]], np.uint32))[:, 0])


def _can_be_hashed(key: PRNGKeyArray) -> bool:
    """Whether the key is a number on this host, of the generator that is known here."""
    return (
        not is_plain()
        and not isinstance(key, jax.core.Tracer)
        and jax.config.jax_threefry_partitionable
        and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        and str(jax.random.key_impl(key)) == _THREEFRY
    )


def _wrapped(words: np.ndarray) -> PRNGKeyArray:
    return jax.random.wrap_key_data(words, impl=_THREEFRY)


class _NumPy:
    """NumPy's operations on words, under the names of StableHLO."""

    add = np.add
    xor = np.bitwise_xor
    or_ = np.bitwise_or
    shift_left = np.left_shift
    shift_right_logical = np.right_shift


def _threefry(key: PRNGKeyArray, counts: np.ndarray) -> np.ndarray:
    """Threefry-2x32 with 20 rounds, by NumPy."""
    words = (*np.asarray(jax.random.key_data(key)), *counts)
    with np.errstate(over="ignore"):  # words wrap around
        return np.stack(threefry_rounds(words, _NumPy, np.uint32))
