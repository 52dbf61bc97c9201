"""The identity of a fit: a digest of its program and of every value in it."""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jax_core

from softcvi.fitting._loop import LoopState, Run, advance_one
from softcvi.targets._row_sums import RowsOnDevices

# Where an object lies in memory differs between processes that compute the same.
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def fingerprint(advance: Callable, state: LoopState, run: Run) -> str:
    """Digest of a fit: its program, every value in it, and where it begins.

    Two fits with the same digest have the same numbers at every step, whatever names
    their functions have: the program is traced, and the arrays that a log density
    closes over are part of it. What a Python function called back from the program
    computes cannot be seen; the first step is compared for that.

    Args:
        advance: The compiled loop: state, first and last step to new state.
        state: The first state.
        run: What stays the same over the steps.
    """
    digests: list[str] = []
    if jnp.ndim(run.key) == 0:
        portable = _portable(run, digests)
        if digests:
            run, advance = portable, functools.partial(_advance, portable)
    first = jnp.zeros((), jnp.int32)
    program = eqx.filter_make_jaxpr(advance)(state, first, first)[0]
    digest = hashlib.sha256(_ADDRESS.sub("", str(program.jaxpr)).encode())
    values = [
        leaf for leaf in jax.tree_util.tree_leaves((state, run)) if _is_array(leaf)
    ]
    for value in [*values, *_constants(program)]:
        digest.update(_as_bytes(value))
    digest.update("".join(digests).encode())
    return digest.hexdigest()


def _portable(run: Run, digests: list[str]) -> Run:
    """The run with rows in one place, so that its program names no devices."""
    _, target = eqx.combine(run.template, run.static)
    leaves = jax.tree_util.tree_leaves(target, is_leaf=_is_spread)
    rows = [leaf for leaf in leaves if _is_spread(leaf)]
    digests += [part.digest for part in rows]
    moved = [part.in_one_place() for part in rows]
    # Nothing of them is trained.
    untrained = [jax.tree_util.tree_map(lambda _: None, part) for part in moved]
    return dataclasses.replace(
        run,
        static=_with_rows(run.static, moved),
        template=_with_rows(run.template, untrained),
    )


def _with_rows(tree: Any, rows: list[Any]) -> Any:
    left = iter(rows)
    return jax.tree_util.tree_map(
        lambda leaf: next(left) if _is_spread(leaf) else leaf, tree, is_leaf=_is_spread
    )


def _is_spread(leaf: Any) -> bool:
    return isinstance(leaf, RowsOnDevices)


def _advance(run: Run, state: LoopState, start: Any, stop: Any) -> LoopState:
    return advance_one(state, start, stop, run)


def _constants(program: jax_core.ClosedJaxpr) -> Iterator[Any]:
    """Values that a program closes over, and those of the programs inside it."""
    yield from program.consts
    pending = [program.jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            yield from (
                v.val for v in equation.invars if isinstance(v, jax_core.Literal)
            )
            for parameter in jax.tree_util.tree_leaves(
                list(equation.params.values()), is_leaf=_is_program
            ):
                if isinstance(parameter, jax_core.ClosedJaxpr):
                    yield from parameter.consts
                    pending.append(parameter.jaxpr)
                elif isinstance(parameter, jax_core.Jaxpr):
                    pending.append(parameter)


def _is_program(value: Any) -> bool:
    return isinstance(value, jax_core.ClosedJaxpr | jax_core.Jaxpr)


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray)


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, jax.Array) and jnp.issubdtype(
        value.dtype, jax.dtypes.prng_key
    ):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return f"{array.shape} {array.dtype} ".encode() + array.tobytes()
