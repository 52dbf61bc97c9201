"""Settings of the process that hold while a fit runs: Python's garbage, cores.

They are restored afterwards.
"""

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from softcvi._compile._switch import is_plain

P = ParamSpec("P")
R = TypeVar("R")

# Objects made between two searches; Python's own number is 700, and tracing makes
# millions that are no garbage.
_OBJECTS = 50_000
# Above so many parameters, or rows of a matrix, several cores are worth having.
_FEW_PARAMETERS = 200
_FEW_ROWS = 256
_LOCK = threading.Lock()


class _Calls:
    """Calls that are under way, in all threads, and what held before the first."""

    number = 0
    before: tuple[int, int, int] = (0, 0, 0)


def collected_rarely(function: Callable[P, R]) -> Callable[P, R]:
    """Look for garbage less often during a call; afterwards as before.

    Whoever has turned the search off, or has made it rarer, is left alone.

    Example:
        >>> collected_rarely(lambda x: x + 1)(1)
        2
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if is_plain():
            return function(*args, **options)
        with _fewer_searches():
            return function(*args, **options)

    return call


@contextlib.contextmanager
def _fewer_searches() -> Iterator[None]:
    with _LOCK:
        if _Calls.number == 0:
            _Calls.before = gc.get_threshold()
            if 0 < _Calls.before[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_Calls.before[1:])
        _Calls.number += 1
    try:
        yield
    finally:
        with _LOCK:
            _Calls.number -= 1
            if _Calls.number == 0 and gc.get_threshold()[0] == _OBJECTS:
                gc.set_threshold(*_Calls.before)


def products_on_one_core(size: int, rows: int) -> AbstractContextManager:
    """Let NumPy and JAX work with matrices on one core, where they are small.

    Threads of OpenBLAS busy-wait for each other, and take the cores from those that
    compile. NumPy's wheel brings one such library; JAX uses SciPy's to
    factorise matrices and to solve with them.

    Args:
        size: Number of parameters.
        rows: Those of the largest matrix that the log density factorises or solves
            with.

    Example:
        >>> import numpy as np
        >>> with products_on_one_core(2, 0):
        ...     product = np.eye(2) @ np.eye(2)
    """
    # Not other threads: OpenBLAS ignores what they set, and two of them could not
    # restore what was before.
    is_main = threading.current_thread() is threading.main_thread()
    if is_plain() or size > _FEW_PARAMETERS or not is_main:
        return contextlib.nullcontext()
    from threadpoolctl import ThreadpoolController

    packages = ["numpy"]
    if rows <= _FEW_ROWS:
        # JAX would load it later, with as many threads as there are cores.
        import scipy.linalg.cython_blas  # noqa: F401

        packages.append("scipy")
    site = Path(np.__file__).parents[1]
    folders = [site / f"{name}.libs" for name in packages]
    folders += [site / name / ".dylibs" for name in packages]
    loaded = ThreadpoolController()
    own = [
        library["filepath"]
        for library in loaded.info()
        if Path(library["filepath"]).parent in folders
    ]
    return loaded.select(filepath=own).limit(limits=1)
