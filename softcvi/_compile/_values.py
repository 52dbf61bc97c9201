"""What a program computes once, keeps and carries, and where arrays lie."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PRNGKeyArray, PyTree

from softcvi._compile._switch import is_plain


def computed_once(key: PRNGKeyArray, tree: PyTree, *, on_gpu: bool = True) -> PyTree:
    """The same numbers, divided by ones that the compiler does not know to be ones.

    XLA's CPU would rather compute draws and log densities anew for every use (each
    observation, labels, predictions, the report) than store them; a division it
    computes once. The step of linear regression takes two thirds of the time, that of
    eight schools three quarters (with JAX 0.12 two fifths), and with the ELBO a third.
    A GPU draws again in less time than it takes to store and read: linear regression's
    step takes a third more there if draws are divided.
    """
    if is_plain() or (not on_gpu and jax.default_backend() == "gpu"):
        return tree
    some_bits = jax.random.key_data(key).ravel()[0]

    def divided(leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        # A one for each: division by a single number becomes a product, which is cheap.
        numbers = jnp.arange(leaf.size, dtype=leaf.dtype).reshape(leaf.shape)
        return leaf / jnp.minimum(1.0 + some_bits.astype(leaf.dtype) + numbers, 1.0)

    return jax.tree_util.tree_map(divided, tree)


Step = Callable[[Array, Any, Array], tuple[Any, Array]]


def loop_in_rows(
    start: Array, stop: Array, every: Array, step: Step, carry: Any, rows: Array
) -> tuple[Any, Array]:
    """Run steps ``start`` to ``stop``; each adds to the row of its ``every`` steps.

    The steps of one row are a loop of their own that knows this row alone.

    Args:
        start: First step.
        stop: The step to stop before.
        every: Steps that share a row.
        step: Function of step, carry and row to the next carry and row.
        carry: What a step passes on.
        rows: One row for each part of the run.

    Example:
        >>> def count(step, carry, row):
        ...     return carry + 1, row + step
        >>> rows = jnp.zeros(2, int)
        >>> total, sums = loop_in_rows(0, 4, 2, count, 0, rows)
        >>> int(total), sums.tolist()
        (4, [1, 5])
    """
    if is_plain():

        def body(i, state):
            carry, rows = state
            carry, row = step(i, carry, rows[i // every])
            return carry, rows.at[i // every].set(row)

        return lax.fori_loop(start, stop, body, (carry, rows))

    def fill(number, state):
        carry, rows = state
        # The row as far as it is filled: sums are then made in the order of the steps
        # wherever the host looked in between, and equal runs have equal histories.
        carry, row = lax.fori_loop(
            jnp.maximum(start, number * every),
            jnp.minimum(stop, (number + 1) * every),
            lambda i, inner: step(i, *inner),
            (carry, rows[number]),
        )
        return carry, rows.at[number].set(row)

    return lax.fori_loop(start // every, -(-stop // every), fill, (carry, rows))


def kept_or_new(kept: Callable[[], PyTree], new: PyTree) -> PyTree:
    """What is computed again from values that are kept, or what is there already.

    Args:
        kept: Computes the same from values that the program keeps.
        new: The value that is there.

    Example:
        >>> kept_or_new(lambda: 2, 2)
        2
    """
    return new if is_plain() else kept()


def host_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An empty array that a CPU device takes over as it is, without a copy.

    Args:
        shape: Its shape.
        dtype: Its dtype.

    Example:
        >>> host_array((2, 3), np.dtype("float32")).shape
        (2, 3)
    """
    if is_plain():
        return np.empty(shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + 64, np.uint8)
    offset = -room.ctypes.data % 64
    return room[offset : offset + size].view(dtype).reshape(shape)
