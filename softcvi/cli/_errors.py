"""Errors as a person at a terminal wants them: one or two lines, with the remedy."""

import difflib
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError

from softcvi.cli._common import in_flags

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
    text = _short(words_of(error))
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
    first = _short(words_of(error)).splitlines()[:1]
    detail = f": {first[0]}" if first else ""
    return f"{path.name}:{lines[-1]}: {type(error).__name__}{detail}"


def words_of(error: BaseException) -> str:
    """What an exception says; nothing if a class of the user's fails at that.

    Example:
        >>> words_of(ValueError("not a number"))
        'not a number'
    """
    try:
        return str(error)
    except Exception:
        return ""


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


def usage_message(error: CycloptsError, root: App) -> str:
    """One line on what the command line got wrong."""
    for kind, words in _WORDS.items():
        if isinstance(error, kind):
            return words(error, root)
    if error.unused_tokens:
        return _unknown(error, root, error.unused_tokens)
    return " ".join(str(error).split())


def _unknown_command(error: UnknownCommandError, root: App) -> str:
    word = (error.unused_tokens or [""])[0]
    known = _commands(error.app)
    listed = ", ".join(known)
    return f"no such command '{word}'{did_you_mean(word, known)} (one of {listed})"


def _missing(error: MissingArgumentError, root: App) -> str:
    if error.argument is None:
        return " ".join(str(error).split())
    name = error.argument.names[0]
    words = error.root_input_tokens or []
    if any(word.split("=")[0] == name for word in words):
        return f"{name}: needs a value"
    return f"required: {name}"


def _bad_value(error: CoercionError, root: App) -> str:
    name = error.argument.names[0] if error.argument else "value"
    value = error.token.value if error.token else ""
    choices = error.argument.get_choices() if error.argument else None
    if choices:
        listed = ", ".join(choices)
        hint = did_you_mean(value, choices)
        return f"{name}: no such choice '{value}'{hint} (one of {listed})"
    if error.msg:
        return f"{name}: {error.msg}"
    kind = error.argument.hint if error.argument else str
    kinds = {int: "int", float: "float"}
    return f"{name}: invalid {kinds.get(kind, 'value')}: '{value}'"


def _unknown_option(error: UnknownOptionError, root: App) -> str:
    return _unknown(error, root, [error.token.keyword or error.token.value])


def _unknown(error: CycloptsError, root: App, words: Sequence[str]) -> str:
    flags = [word.split("=")[0] for word in words if word.startswith("-")]
    if not flags:
        return f"unknown word {words[0]}"
    known = _options(error.app)
    hint = _elsewhere(error, root, flags[0]) or did_you_mean(flags[0], known)
    return f"unknown option {flags[0]}{hint}"


def _elsewhere(error: CycloptsError, root: App, flag: str) -> str:
    """Which commands beside this one have the option."""
    chain = error.command_chain or ()
    if len(chain) < 2:
        return ""
    parent = root
    for name in chain[:-1]:
        parent = parent[name]
    others = [n for n in _commands(parent) if flag in _options(parent[n])]
    return f", which belongs to {', '.join(others)}" if others else ""


def _commands(app: App | None) -> list[str]:
    return [] if app is None else [n for n in app if not n.startswith("-")]


def _options(app: App | None) -> list[str]:
    if app is None or app.default_command is None:
        return []
    arguments = app.assemble_argument_collection()
    return [name for a in arguments for name in a.names if name.startswith("--")]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question about the nearest of the known words, if one is near."""
    # Two dashes would make any two flags look alike.
    bare = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.lstrip("-"), list(bare), n=1)
    return f"; did you mean {bare[near[0]]}?" if near else ""


_WORDS: dict[type[CycloptsError], Callable[[Any, App], str]] = {
    UnknownCommandError: _unknown_command,
    MissingArgumentError: _missing,
    CoercionError: _bad_value,
    UnknownOptionError: _unknown_option,
}
