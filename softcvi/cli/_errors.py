"""Errors as a person at a terminal wants them: one or two lines, with the remedy."""

import traceback
from pathlib import Path

from softcvi.cli._flags import in_flags

OK, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130
_MAX_CHARS = 600


class CommandError(Exception):
    """An error whose message is all that the user needs to read.

    Args:
        message: What is wrong, and the remedy.
        code: Exit code of the process.

    Example:
        >>> CommandError("data.json: no such file. Check --data.").code
        2
    """

    def __init__(self, message: str, code: int = USAGE):
        super().__init__(message)
        self.code = code


def explain(error: Exception) -> tuple[str, int]:
    """The message and the exit code for any exception."""
    text = _short(str(error))
    if isinstance(error, CommandError):
        return text, error.code
    if isinstance(error, ModuleNotFoundError):
        return f"{text}. Install it, for example with: {_install(error)}", FAILURE
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or text).lower()}", USAGE
    if isinstance(error, ValueError | TypeError | OSError):
        # The library's own messages name the argument and the remedy.
        return in_flags(text) or type(error).__name__, USAGE
    name = type(error).__name__
    return f"{name}: {text}" if text else name, FAILURE


def in_file(error: BaseException, path: Path) -> str | None:
    """Where in a user's file an exception came from, with its first line."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if not lines:
        return None
    first = _short(str(error)).splitlines()[:1]
    detail = f": {first[0]}" if first else ""
    return f"{path.name}:{lines[-1]}: {type(error).__name__}{detail}"


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:2])[:_MAX_CHARS]


_EXTRAS = {
    "arviz_base": "arviz",
    "blackjax": "blackjax",
    "jinja2": "report",
    "matplotlib": "report",
    "numpyro": "numpyro",
    "pooch": "experiments",
    "pymc": "pymc",
    "pytensor": "pymc",
    "sklearn": "experiments",
}


def _install(error: ModuleNotFoundError) -> str:
    package = (error.name or "").split(".")[0]
    if package in _EXTRAS:
        return f"pip install 'softcvi[{_EXTRAS[package]}]'"
    return f"pip install {package}"
