"""Other rounding errors on purpose (Monte Carlo arithmetic; Parker, 1997).

What a log density changes by if each operation is rounded in another way is the size of
its rounding error, also where it is the same at all points around: far out numbers of
a model may be lost in others altogether.
"""

import dataclasses
import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

# Operations that only move values or choose among them, and so do not round.
_EXACT = (
    *("abs", "neg", "sign", "min", "max", "clamp", "floor", "ceil", "round"),
    *("reduce_max", "reduce_min", "cummax", "cummin", "sort", "select_n"),
    *("broadcast_in_dim", "concatenate", "expand_dims", "pad", "reshape", "rev"),
    *("dynamic_slice", "dynamic_update_slice", "gather", "scatter", "slice", "split"),
    *("squeeze", "transpose", "convert_element_type", "copy", "iota"),
    *("optimization_barrier", "stop_gradient"),
)
# Incommensurable steps from one number and one operation to the next.
_NUMBERS, _OPERATIONS = 78.233, 12.9898


@dataclasses.dataclass
class Shaking:
    """Changes the last digits of what operations compute.

    Attributes:
        seed: Any number; others give other changes.
        size: Largest relative change.
    """

    seed: Float[ArrayLike, ""]
    size: float
    turns: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def __call__(self, name: str, values: list) -> list:
        return values if name in _EXACT else [self._changed(v) for v in values]

    def _changed(self, value: Array) -> Array:
        if not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            return value
        numbers = jax.lax.iota(jnp.float32, value.size).reshape(value.shape)
        phase = (next(self.turns) + 1) * _OPERATIONS * (self.seed + 1.0)
        change = self.size * jnp.sin(phase + _NUMBERS * numbers)
        return value * (1 + change.astype(value.dtype))
