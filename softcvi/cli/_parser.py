"""A parser whose errors are two lines: what is wrong, and where to read on."""

import argparse
import difflib
from collections.abc import Iterable
from typing import Any, NoReturn

from softcvi.cli._errors import USAGE


class Parser(argparse.ArgumentParser):
    """Says what is wrong without a page of usage, and what may have been meant.

    Example:
        >>> parser = Parser(prog="softcvi")
        >>> _ = parser.add_argument("--data")
        >>> parser.parse_args(["--data", "y.csv"]).data
        'y.csv'
    """

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\nsee {self.prog} --help\n")

    def parse_args(self, args=None, namespace=None):
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            # What a command does not know comes back to the whole parser.
            self._command(found).unknown(rest)
        return found

    def unknown(self, words: list[str]) -> NoReturn:
        """Refuse words that are no options of this parser.

        Args:
            words: The words.
        """
        flags = [word.split("=")[0] for word in words if word.startswith("-")]
        known = [flag for action in self._actions for flag in action.option_strings]
        hint = _did_you_mean(flags[0], known) if flags else ""
        what = f"unknown option {flags[0]}" if flags else f"unknown word {words[0]}"
        self.error(f"{what}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        hint = _did_you_mean(str(value), choices)
        raise argparse.ArgumentError(
            action, f"no such choice '{value}'{hint} (one of {', '.join(choices)})"
        )

    def _command(self, found: argparse.Namespace) -> "Parser":
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return action.choices[getattr(found, action.dest)]
        return self


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
