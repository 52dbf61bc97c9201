"""What went wrong while a user's model ran: where, and which data do not fit."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcvi.cli._errors import FAILURE, USAGE, CommandError, in_file
from softcvi.cli._flags import names_a_flag

_ABOUT_SHAPES = re.compile("shape|broadcast|dimension|length", re.IGNORECASE)
# What the library calls the user's model.
_THE_MODEL = re.compile("^(target|model|log_prob): ")


def model_error(
    error: Exception, path: Path, name: str, data: Mapping[str, Any], source: str
) -> Exception:
    """The same error with the model's file and, for shapes, the data's lengths."""
    text = str(error).strip()
    if isinstance(error, CommandError | OSError | ImportError) or names_a_flag(text):
        return error
    where = in_file(error, path.resolve()) or _named(error, text, f"{path.name}:{name}")
    lengths = _unequal_lengths(data, source) if _ABOUT_SHAPES.search(text) else ""
    is_input = bool(lengths or _THE_MODEL.match(text))
    return CommandError(f"{where}\n{lengths}".rstrip(), USAGE if is_input else FAILURE)


def _named(error: Exception, text: str, where: str) -> str:
    if _THE_MODEL.match(text):
        return f"{where}: {_THE_MODEL.sub('', text)}"
    first = text.splitlines()[:1]
    return ": ".join([where, type(error).__name__, *first])


def _unequal_lengths(data: Mapping[str, Any], source: str) -> str:
    lengths = {
        name: len(value)
        for name, value in data.items()
        if isinstance(value, np.ndarray) and value.ndim
    }
    if len(set(lengths.values())) < 2:
        return ""
    (first, length), *others = lengths.items()
    listed = "".join(f", {name} has {length}" for name, length in others)
    return f"{source}: {first} has {length} values{listed}. Make them equally long."
