"""A Stan program as the user gives it: a file or text."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """The text of a program and where it came from.

    Attributes:
        text: The program.
        name: A short name for messages.
        folder: Where ``#include`` looks for files, if the program is a file.

    Example:
        >>> Source("parameters { real x; } model { x ~ std_normal(); }").name
        'model.stan'
    """

    text: str
    name: str = "model.stan"
    folder: Path | None = None


def as_source(program: str | os.PathLike) -> Source:
    """Read the program if it is a path, take it as it is if it is text.

    Args:
        program: A path, or the text of a program, which has braces in it.

    Example:
        >>> as_source("parameters { real x; }").folder is None
        True
    """
    if isinstance(program, str) and ("{" in program or "\n" in program):
        return Source(program)
    try:
        path = Path(program)
    except TypeError as error:
        raise TypeError(
            "program: expected a path to a Stan file or the text of a Stan program; "
            f"got {type(program).__name__}."
        ) from error
    if not path.is_file():
        raise FileNotFoundError(
            f"program: {path}: no such file. Give a path to a Stan file, or the text "
            "of a program."
        )
    return Source(path.read_text(), path.name, path.resolve().parent)
