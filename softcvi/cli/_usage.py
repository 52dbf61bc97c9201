"""What is wrong with a command line, in one line that names the remedy."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError


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
    hint = did_you_mean(flags[0], known) or _elsewhere(error, root, flags[0])
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
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


_WORDS: dict[type[CycloptsError], Callable[[Any, App], str]] = {
    UnknownCommandError: _unknown_command,
    MissingArgumentError: _missing,
    CoercionError: _bad_value,
    UnknownOptionError: _unknown_option,
}
