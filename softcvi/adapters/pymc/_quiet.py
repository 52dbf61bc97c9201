"""Calls of PyMC's graphs without warnings about their precision."""

import warnings
from collections.abc import Callable
from typing import Any


def quietly(function: Callable, *args: Any) -> Any:
    """Call a translated graph.

    Args:
        function: The graph as a JAX function.
        *args: Its arguments.
    """
    with warnings.catch_warnings():
        # PyMC's graphs ask for doubles everywhere; in single precision they get floats.
        warnings.filterwarnings("ignore", "Explicitly requested dtype")
        return function(*args)
