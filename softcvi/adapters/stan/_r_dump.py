"""Data files that R's ``dump`` writes, which Stan programs of the past come with."""

import math
import re
from typing import Any

import numpy as np

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)L?)
    |(?P<special>[-+]?(?:Inf|NaN|NA)\b)
    |(?P<word>[A-Za-z.][\w.]*|"[^"]*"|`[^`]*`|'[^']*')
    |(?P<sign><-|[(),:=])
    )""",
    re.VERBOSE,
)

# Numbers that ranges such as 1:1000 and calls such as integer(1000) may stand for, and
# rows without numbers, where the text is no longer than this.
_MAX_DESCRIBED = 1_000_000


def parse_r_dump(text: str) -> dict[str, Any]:
    """Named values of an R dump.

    Args:
        text: Assignments such as ``y <- c(1, 2)`` or
            ``X <- structure(c(1, 2, 3, 4), .Dim = c(2L, 2L))``.

    Example:
        >>> parse_r_dump("N <- 2L; X <- structure(1:4, .Dim = c(2L, 2L))")["X"]
        array([[1, 3],
               [2, 4]])
    """
    tokens = _tokens(re.sub(r"#[^\n]*", "", text))
    reader = _Reader(tokens, max(_MAX_DESCRIBED, len(text)))
    values = {}
    while not reader.is_done:
        name = reader.take().strip("\"'`")
        reader.expect("<-", "=")
        values[name] = reader.value()
    return values


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    text = text.replace(";", "\n").rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            rest = text[position : position + 40]
            raise ValueError(f"data: cannot read this part of the R dump: {rest!r}.")
        found.append(match.group(match.lastgroup or 0))
        position = match.end()
    return found


class _Reader:
    """Reads values from a list of tokens."""

    def __init__(self, tokens: list[str], most: int):
        self.tokens = tokens
        self.position = 0
        self._most = most
        self._described: float = 0

    @property
    def is_done(self) -> bool:
        return self.position >= len(self.tokens)

    @property
    def next(self) -> str:
        return "" if self.is_done else self.tokens[self.position]

    def take(self) -> str:
        if self.is_done:
            raise ValueError("data: the R dump ends in the middle of a value.")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, *wanted: str) -> None:
        found = self.take()
        if found not in wanted:
            raise ValueError(
                f"data: expected {' or '.join(wanted)} in the R dump, found {found!r}."
            )

    def value(self) -> Any:
        word = self.take()
        calls = {"c": self._joined, "structure": self._shaped}
        empty = {"integer": int, "double": float, "numeric": float, "logical": int}
        if word in calls and self.next == "(":
            return calls[word]()
        if word in empty and self.next == "(":
            return self._zeros(empty[word])
        if word[0] in "\"'":
            return word[1:-1]
        if word in ("TRUE", "FALSE", "T", "F"):
            return int(word[0] == "T")
        first = _number(word)
        if self.next != ":":
            return first
        self.take()
        last = _number(self.take())
        step = 1 if last >= first else -1
        self._check_length(abs(last - first))
        return np.arange(int(first), int(last) + step, step)

    def _check_length(self, count: float) -> None:
        """Refuse a vector that no data set has: a few letters must not take the memory.

        The numbers are kept over all vectors of a file.
        """
        self._described += count
        if not (count >= 0 and self._described <= self._most):
            raise ValueError(
                f"data: the R dump describes {self._described:.0f} numbers without "
                f"listing them, more than {self._most}."
            )

    def _joined(self) -> np.ndarray:
        self.expect("(")
        parts = []
        while self.next != ")":
            parts.append(np.atleast_1d(self.value()))
            if self.next == ",":
                self.take()
        self.take()
        return np.concatenate(parts) if parts else np.zeros(0, int)

    def _shaped(self) -> np.ndarray:
        self.expect("(")
        values, shape = np.atleast_1d(self.value()), None
        while self.next == ",":
            self.take()
            name = self.take().strip("\"'`")
            self.expect("=")
            given = self.value()
            if name in (".Dim", "dim"):
                shape = tuple(int(n) for n in np.atleast_1d(given))
        self.expect(")")
        if shape is None:
            return values
        if not values.size:
            self._check_length(math.prod(max(n, 1) for n in shape))
        return values.reshape(shape, order="F")

    def _zeros(self, dtype: type) -> np.ndarray:
        self.expect("(")
        count = 0 if self.next == ")" else int(self.value())
        self._check_length(count)
        self.expect(")")
        return np.zeros(count, dtype)


def _number(token: str) -> float | int:
    if token == "NA":
        return float("nan")
    try:
        return int(token.removesuffix("L"))
    except ValueError:
        pass
    try:
        return float(token.removesuffix("L"))
    except ValueError as error:
        raise ValueError(f"data: no number in the R dump: {token!r}.") from error
