"""Statements about some members of a parameter, such as ``x[t] ~ normal(x[t - 1], s)``.

Each member has a location and a scale of its own, and the location may hold members
that come before it: in random walks, trends, seasons. Standardised, the members are the
steps of the walk, whose width does not change with the scale.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcvi.adapters.stan._expression import Expression, UnknownExpressionError

_LOOP = re.compile(r"for \((\w+) in (.+?) : (.+?)\) \{$")
# Most members, as their dependence on each other is a square matrix.
_MOST_MEMBERS = 1000


@dataclass(frozen=True)
class Members:
    """A statement about members, with the expressions in it.

    Attributes:
        index: Which members, between brackets.
        location: Their location.
        scale: Their scale.
        loops: Variable, first and last value of the loops around the statement.

    Example:
        >>> Members("t", "x[t - 1]", "s", (("t", "2", "n"),)).index
        't'
    """

    index: str
    location: str
    scale: str
    loops: tuple[tuple[str, str, str], ...] = ()


def loops_around(text: str) -> tuple[tuple[str, str, str], ...]:
    r"""The loops that are open at the end of a text, as stanc prints it.

    Args:
        text: A program up to some statement.

    Example:
        >>> loops_around("for (k in 1 : K) {\n  a;\n}\nfor (t in 2 : n) {\n  ")
        (('t', '2', 'n'),)
    """
    opened: list[re.Match | None] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("}"):
            opened = opened[:-1]
        if bare.endswith("{"):
            opened.append(_LOOP.match(bare))
    return tuple(loop.group(1, 2, 3) for loop in opened if loop is not None)


@dataclass(frozen=True)
class Evaluated:
    """Members with what the statement says of them at some points.

    Attributes:
        at: Which they are, in the order of the statement.
        location: Their location, members by points.
        scale: Their scale, likewise.

    Example:
        >>> Evaluated(np.arange(2), np.zeros((2, 1)), np.ones((2, 1))).at.size
        2
    """

    at: np.ndarray
    location: np.ndarray
    scale: np.ndarray


def evaluated(
    members: Members,
    which: np.ndarray,
    values: Mapping[str, np.ndarray],
    data: Mapping[str, Any],
) -> Evaluated:
    """What a statement says of each member.

    Args:
        members: The statement.
        which: Number of each member, in the shape of the parameter.
        values: Variables at some points, which are the last axis.
        data: Data of the program.

    Raises:
        UnknownExpressionError: If it holds what cannot be evaluated here.

    Example:
        >>> walk = Members("t", "x[t - 1]", "s", (("t", "2", "n"),))
        >>> x = np.array([[3.0], [4.0], [6.0]])
        >>> values = {"x": x, "s": np.ones(1)}
        >>> evaluated(walk, np.arange(3), values, {"n": 3}).location.tolist()
        [[3.0], [4.0]]
    """
    names = {**{name: _over_points(value) for name, value in data.items()}, **values}
    names["which__"] = which[..., None]
    of_member = [
        Expression(text).over_points
        for text in (f"which__[{members.index}]", members.location, members.scale)
    ]
    rows = []
    for known in _each(members.loops, names):
        rows.append(_rows(of_member, known))
        if sum(len(row[0]) for row in rows) > _MOST_MEMBERS:
            raise UnknownExpressionError("too many members")
    if not rows:
        raise UnknownExpressionError("no members")
    at, location, scale = (np.concatenate(part) for part in zip(*rows, strict=True))
    return Evaluated(at[:, 0].astype(int), location, scale)


def _over_points(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array[..., None] if array.ndim else array


def _each(
    loops: tuple[tuple[str, str, str], ...], names: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """The names with every value of the variables of some loops."""
    if not loops:
        yield names
        return
    (name, *ends), *inner = loops
    first, last = (int(Expression(end).over_points(names).item()) for end in ends)
    for value in range(first, last + 1):
        yield from _each(tuple(inner), {**names, name: np.asarray(value)})


def _rows(
    of_member: list[Callable], names: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, location and scale of the members for which one statement stands."""
    at, *given = (value(names) for value in of_member)
    count = at.size
    at = at.reshape(count, 1)
    points = max(value.shape[-1] if value.ndim else 1 for value in given)
    shapes = [v.reshape(-1, v.shape[-1]) if v.ndim else v.reshape(1, 1) for v in given]
    try:
        location, scale = (np.broadcast_to(v, (count, points)) for v in shapes)
    except ValueError as error:
        raise UnknownExpressionError(str(error)) from error
    return at, location, scale


def in_order(own: np.ndarray) -> np.ndarray | None:
    """An order in which members depend only on those before; None if there is none.

    Args:
        own: Change of each member's location with each member.

    Example:
        >>> in_order(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [1, 0]
        >>> in_order(np.eye(2)) is None
        True
    """
    size = len(own)
    for order in (np.arange(size), np.arange(size)[::-1]):
        if not np.any(np.triu(own[np.ix_(order, order)])):
            return order
    return None
