"""Compile what will be called soon, on other threads.

Tracing holds Python's lock, XLA's compiler does not. In a rehearsal each program is
traced and handed to a thread; what it would return is made up, so that the code between
programs goes on to the next. The real call then finds its program compiled.
"""

import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import math
import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from softcvi._compile._host import put
from softcvi._compile._switch import is_plain

_REHEARSING: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "rehearsing", default=False
)
_BEGUN: weakref.WeakSet[concurrent.futures.Future] = weakref.WeakSet()
_MOST_THREADS = 4
_MOST_REMEMBERED = 16
# Results with more numbers are not made up: those of large models take longer to make
# than their programs to compile.
_MOST_NUMBERS = 1_000_000
# Size of made-up numbers: even as log weights, not flat as curvatures.
_SMALL = 0.3


class Waiting:
    """The compilations of one function that have begun and were not yet waited for.

    Example:
        >>> Waiting().call(lambda x: x + 1, 1)
        2
    """

    def __init__(self) -> None:
        self._begun: dict[Any, tuple[concurrent.futures.Future, Any]] = {}

    def call(self, program: Any, *args: Any) -> Any:
        """Call a program; in a rehearsal, begin to compile it.

        Args:
            program: From ``eqx.filter_jit``.
            *args: Its arguments.
        """
        if _REHEARSING.get():
            shapes = _shapes(args)
            if shapes not in self._begun:
                lowered = program.lower(*args)
                future = _threads().submit(lowered.compile)
                _BEGUN.add(future)
                self._begun[shapes] = future, _made_up(lowered)
            return self._begun[shapes][1]
        # Without their result: what fails there fails again here, where it is seen.
        begun, self._begun = self._begun, {}
        for future, _ in begun.values():
            future.exception()
        return program(*args)


def rehearse(function: Callable, *args: PyTree) -> None:
    """Begin to compile the programs that a call with these arguments needs.

    Nothing is computed. What the function does between programs is done with made-up
    numbers, so it must have no effects; whatever goes wrong there ends the rehearsal.

    Args:
        function: Calls programs of this package.
        *args: Pytrees; the same shapes are rehearsed once.

    Example:
        >>> rehearse(lambda x: x, 1.0)
    """
    if is_plain() or _REHEARSING.get() or _cores() < 2 or _is_known(function, args):
        return
    with _rehearsing(), contextlib.suppress(Exception):
        function(*args)


def is_rehearsing() -> bool:
    """Whether nothing is computed now, and numbers are made up.

    Example:
        >>> is_rehearsing()
        False
    """
    return _REHEARSING.get()


def is_compiling(seconds: float) -> bool:
    """Whether a rehearsed program is still being compiled after a moment.

    Args:
        seconds: How long to wait; a program that the cache has takes less.

    Example:
        >>> is_compiling(0.0)
        False
    """
    return bool(concurrent.futures.wait(set(_BEGUN), seconds).not_done)


@contextlib.contextmanager
def _rehearsing() -> Iterator[None]:
    token = _REHEARSING.set(True)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        _REHEARSING.reset(token)


_KNOWN: collections.OrderedDict[Any, None] = collections.OrderedDict()


def _is_known(function: Callable, args: PyTree) -> bool:
    """Whether it was rehearsed before with such arguments."""
    identity = function, _shapes(args)
    is_known = identity in _KNOWN
    _KNOWN[identity] = None
    while len(_KNOWN) > _MOST_REMEMBERED:
        _KNOWN.popitem(last=False)
    return is_known


def _shapes(args: PyTree) -> Any:
    """What tells the programs of a function apart."""
    leaves, treedef = jax.tree_util.tree_flatten(args)
    arrays = tuple(
        (np.shape(leaf), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves
    )
    return treedef, arrays, jax.config.jax_enable_x64


def _made_up(lowered: Any) -> Any:
    """Small numbers in the shapes of a program's results."""
    rng = np.random.default_rng(0)

    def array(info: Any) -> jax.Array:
        if math.prod(info.shape) > _MOST_NUMBERS:
            raise ValueError("too many numbers to make up")
        values = _SMALL * rng.normal(size=info.shape)
        return put(np.asarray(values, np.dtype(info.dtype)))

    made = jax.tree_util.tree_map(array, lowered.lowered.out_info)
    return lowered.postprocess(made)


@functools.cache
def _threads() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(
        min(_cores(), _MOST_THREADS), thread_name_prefix="softcvi-compile"
    )


if hasattr(os, "register_at_fork"):  # threads do not live on in a forked process
    os.register_at_fork(after_in_child=_threads.cache_clear)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
