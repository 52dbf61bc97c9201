"""Exceptions of a model that is called back from compiled programs."""

import contextlib
from collections.abc import Iterator

import jax


class CallbackFailure(RuntimeError):
    """A function called back from inside a compiled program raised."""


@contextlib.contextmanager
def callback_failures() -> Iterator[None]:
    """Tell what a model raised when it was called back from other errors.

    Raises:
        CallbackFailure: For what the model raised; other errors pass as they are.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "callback" not in str(error).lower():
            raise
        raise CallbackFailure(str(error)) from error
    except ValueError as error:
        # What a callback raises on the calling thread arrives as a ValueError.
        if "CpuCallback" not in str(error):
            raise
        raise CallbackFailure(str(error)) from error


def first_line(error: Exception) -> str:
    r"""The line of an error that says most: that of the exception in the model.

    Args:
        error: What a compiled program raised.

    Example:
        >>> first_line(RuntimeError("INTERNAL: callback: Traceback\nKeyError: 'a'"))
        "KeyError: 'a'"
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        if "Error" in line or "Exception" in line:
            return line
    return lines[0] if lines else type(error).__name__
