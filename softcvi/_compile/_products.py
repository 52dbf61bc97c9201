"""NumPy's products of small matrices on one core."""

import contextlib
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from softcvi._compile._switch import is_plain

# Above so many parameters the products of matrices are worth several cores.
_FEW_PARAMETERS = 200


def products_on_one_core(size: int) -> AbstractContextManager:
    """Let NumPy multiply matrices on one core, where they are small.

    Its threads wait for each other by turning in circles, and take the cores from those
    that compile. The library is the one that NumPy's own wheel brings: JAX factorises
    the matrices of a model by SciPy's, and some of these are large.

    Args:
        size: Number of parameters.

    Example:
        >>> import numpy as np
        >>> with products_on_one_core(2):
        ...     product = np.eye(2) @ np.eye(2)
    """
    # Not other threads: OpenBLAS ignores what they set, and two of them could not
    # restore what was before.
    is_main = threading.current_thread() is threading.main_thread()
    if is_plain() or size > _FEW_PARAMETERS or not is_main:
        return contextlib.nullcontext()
    from threadpoolctl import ThreadpoolController

    numpy = Path(np.__file__).parent
    folders = (numpy.with_name("numpy.libs"), numpy / ".dylibs")
    loaded = ThreadpoolController()
    own = [
        library["filepath"]
        for library in loaded.info()
        if Path(library["filepath"]).parent in folders
    ]
    return loaded.select(filepath=own).limit(limits=1)
