"""Products and factors of small matrices on one core."""

import contextlib
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from softcvi._compile._switch import is_plain

# Above so many parameters, or rows of a matrix, several cores are worth having.
_FEW_PARAMETERS = 200
_FEW_ROWS = 256


def products_on_one_core(size: int, rows: int) -> AbstractContextManager:
    """Let NumPy and JAX work with matrices on one core, where they are small.

    Threads of OpenBLAS wait for each other by turning in circles, and take the cores
    from those that compile. NumPy's wheel brings one such library; JAX uses SciPy's to
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
