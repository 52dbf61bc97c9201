"""Where the hierarchies of a program lie in its unconstrained vector."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from softcvi.adapters.stan._decentre import AbstractWalk, Recursion, Standardised, Walk
from softcvi.adapters.stan._expression import Expression, UnknownExpressionError
from softcvi.adapters.stan._fitted import MORE, fitted, fitted_logs
from softcvi.adapters.stan._hierarchies import Hierarchy
from softcvi.adapters.stan._members import Members, evaluated, in_order
from softcvi.adapters.stan._program import AbstractProgram, Layout
from softcvi.adapters.stan._scalars import FAR, Term, terms

# Scalars that a location or a scale may depend on.
_MOST_PARENTS = 60


def placed(
    candidates: tuple[Hierarchy, ...],
    program: AbstractProgram,
    types: Mapping[str, str],
    data: Mapping[str, Any] | None = None,
) -> tuple[Standardised, ...]:
    """The hierarchies that can be found, parents before their children.

    Args:
        candidates: What the text of the program suggests.
        program: The compiled program, asked whether parameters are where they seem.
        types: Types of its parameters.
        data: Data of the program.
    """
    known = {name.partition(".")[0] for block in program.names[:2] for name in block}
    candidates = tuple(each for each in candidates if _may_vary(each.scale, known))
    if not candidates:
        return ()
    where, start = {}, 0
    for name, shape in Layout(program.names[0]).shapes:
        size = _unconstrained_size(types.get(name, "real"), shape)
        where[name] = tuple(range(start, start + size))
        start += size
    if start != program.size:
        return ()
    probe = _Probe(program, where, {} if data is None else data, types)
    found = [probe.standardised(each) for each in candidates if each.name in where]
    return tuple(_parents_first([each for each in found if each is not None]))


def _may_vary(text: str, known: set[str]) -> bool:
    """Whether an expression can be evaluated and holds something that varies."""
    try:
        return not known.isdisjoint(Expression(text).names)
    except UnknownExpressionError:
        return False


class _Line(NamedTuple):
    """What a statement says of a parameter, as a line in its coordinates.

    Attributes:
        terms: How the parameter depends on them.
        centre: What the statement is about where they are zero.
        width: Its change with each.
        is_log: Whether the statement is about the logarithm of the parameter.
    """

    terms: list[Term]
    centre: np.ndarray
    width: np.ndarray
    is_log: bool

    @classmethod
    def of(cls, terms: list[Term] | None, *, is_log: bool) -> "_Line | None":
        """None for parameters that are no line, or far from one."""
        terms = terms or []
        kinds = {(t.kind, t.low if t.kind == "lower" else None) for t in terms}
        zero, one = np.zeros(len(terms)), np.ones(len(terms))
        if kinds == ({("lower", 0.0)} if is_log else {("free", None)}):
            return cls([Term(t.at, "free") for t in terms], zero, one, is_log)
        if is_log or kinds != {("bounded", None)}:
            return None
        low, high = (
            np.array([getattr(t, end) for t in terms]) for end in ("low", "high")
        )
        # Between wide bounds a parameter is nearly a line in its coordinate.
        return cls(terms, (low + high) / 2, (high - low) / 4, is_log)


class _Probe:
    """Values of a program at a few points, which tell how they depend on each other."""

    def __init__(
        self,
        program: AbstractProgram,
        where: Mapping[str, tuple[int, ...]],
        data: Mapping[str, Any],
        types: Mapping[str, str],
    ):
        shape = (_MOST_PARENTS + MORE + 3, program.size)
        points = np.random.default_rng(0).uniform(-1, 1, shape)
        # The last two are far out, where a parameter with bounds is at one of them.
        points[-2:] = [[-FAR], [FAR]]
        names = [*program.names[0], *program.names[1]]
        rows = program.constrain(points, np.zeros(len(points), np.uint64))
        values = Layout(names).split(rows[:, : len(names)])
        self.where, self.data = where, data
        self.terms = {}
        for name, at in where.items():
            flat = values[name].reshape(len(points), -1)
            self.terms[name] = terms(at, types.get(name, "real"), flat, points)
        self.points = points[:-2]
        self.values = {name: value[:-2] for name, value in values.items()}

    def standardised(self, each: Hierarchy) -> Standardised | None:
        """A hierarchy, if its parts are what they seem to be."""
        line = _Line.of(self.terms[each.name], is_log=each.is_positive)
        if line is None:
            return None
        if each.members is not None:
            found = self._of_members(each, each.members, line)
            if found is not None:
                return found
        try:
            parts = Expression(each.location), Expression(each.scale)
            if any(each.name in part.names for part in parts):
                return None
            location, scale = (self._over_members(each, part) for part in parts)
        except UnknownExpressionError:
            return None
        if location is None or scale is None:
            return None
        # One number for all members where they are alike.
        centre, width = (p[:1] if np.ptp(p) == 0 else p for p in line[1:3])
        affine = fitted(
            (location - centre) / width, self._parents(parts[0].names), self.points
        )
        log_scale = fitted_logs(
            scale / width, self._parents(parts[1].names), self.points
        )
        if affine is None or log_scale is None:
            return None
        return Standardised(each.name, self.where[each.name], affine, log_scale)

    def _of_members(
        self, each: Hierarchy, members: Members, line: _Line
    ) -> Standardised | None:
        """A hierarchy, a random walk or a recursion of the members of a statement."""
        which = np.arange(len(line.terms)).reshape(self.values[each.name].shape[1:])
        values = {name: np.moveaxis(v, 0, -1) for name, v in self.values.items()}

        def slopes(point: int) -> np.ndarray:
            here = {name: value[..., [point]] for name, value in values.items()}
            return self._slopes(each, members, which, line, here)

        try:
            names = Expression(members.location).names - {each.name}
            of_scale = Expression(members.scale).names
            found = evaluated(members, which, values, self.data)
            first = [slopes(0), slopes(1)]
        except UnknownExpressionError:
            return None
        if len(np.unique(found.at)) < len(found.at):
            return None
        order = in_order(np.any(first, axis=0)[:, found.at])
        if order is None:
            return None
        at = found.at[order]
        # Entries that are not zero, among members in this order and all members.
        rows, columns = np.nonzero(np.any(first, axis=0)[order])
        count = 1 if np.allclose(first[0], first[1]) else len(self.points)
        entries = [slopes(p)[order][rows, columns] for p in range(count)]
        inside = np.isin(columns, at)
        changes = np.stack(entries)[:, inside]
        row, column = rows[inside], columns[inside]
        shape = (len(at), len(self.points))
        rest = np.array(np.broadcast_to(found.location[order], shape))
        own = np.stack([term.value(self.points) for term in line.terms])
        away = own[column].T - line.centre[column]
        np.subtract.at(rest, row, (changes * away).T)
        scale = np.broadcast_to(found.scale[order], shape).T / line.width[at]
        # Members without a statement, such as the first, are parents of the others.
        others = [line.terms[k] for k in np.unique(columns[~inside])]
        parents = self._parents(names)
        location = fitted(
            (rest.T - line.centre[at]) / line.width[at],
            [*parents, *others][:_MOST_PARENTS],
            self.points,
        )
        log_scale = fitted_logs(scale, self._parents(of_scale), self.points)
        if location is None or log_scale is None:
            return None
        place = np.empty(len(line.terms), int)
        place[at] = np.arange(len(at))
        changes = changes * line.width[column] / line.width[at][row]
        walk = self._walk(changes, row, place[column], len(at), parents)
        if walk is None and np.any(changes):
            return None
        positions = np.array(self.where[each.name])
        places = tuple(positions[at].tolist())
        return Standardised(each.name, places, location, log_scale, walk)

    def _walk(
        self,
        changes: np.ndarray,
        rows: np.ndarray,
        columns: np.ndarray,
        size: int,
        parents: list[Term],
    ) -> AbstractWalk | None:
        """How members depend on each other; None if not, or in no simple way."""
        if not np.any(changes):
            return None
        if len(changes) == 1:
            own = np.zeros((size, size))
            own[rows, columns] = changes[0]
            return Walk.of(own)
        found = fitted(changes, parents, self.points)
        return None if found is None else Recursion(found, rows, columns, size)

    def _slopes(
        self,
        each: Hierarchy,
        members: Members,
        which: np.ndarray,
        line: _Line,
        here: Mapping[str, np.ndarray],
    ) -> np.ndarray:
        """Change of each member's location with all members, where all else stays."""
        own = here[each.name].ravel()
        own = np.log(own) if line.is_log else own
        # Each member a little further, one after the other.
        moved = own + np.eye(own.size + 1)[:, 1:]
        moved = np.exp(moved) if line.is_log else moved
        moved = np.moveaxis(moved.reshape(-1, *which.shape), 0, -1)
        values = {**here, each.name: moved}
        changed = evaluated(members, which, values, self.data).location
        changed = np.broadcast_to(changed, (len(changed), 1 + own.size))
        slopes = changed[:, 1:] - changed[:, :1]
        return np.where(np.abs(slopes) < 1e-8, 0.0, slopes)

    def _over_members(
        self, each: Hierarchy, expression: Expression
    ) -> np.ndarray | None:
        """Values at all points for all members, one column where these are the same."""
        known = [name for name in expression.names if name in self.values]
        values = np.stack(
            [
                expression.value({**self.data, **{n: self.values[n][i] for n in known}})
                for i in range(len(self.points))
            ]
        )
        if values.ndim == 1:
            return values[:, None]
        shape = self.values[each.name].shape[1:]
        if each.is_looped and values.shape[1:] == shape[1:]:
            values = np.repeat(values[:, None], shape[0], axis=1)
        return values.reshape(len(values), -1) if values.shape[1:] == shape else None

    def _parents(self, names: frozenset[str]) -> list[Term]:
        """Scalars that an expression may depend on.

        A transformed parameter may depend on any scalar parameter.
        """
        is_made = any(n in self.values and n not in self.where for n in names)
        found: list[Term] = []
        for name, own in self.terms.items():
            if own is None or not (name in names or (is_made and len(own) == 1)):
                continue
            if len(found) + len(own) <= _MOST_PARENTS:
                found += own
        return found


def _parents_first(found: list[Standardised]) -> Iterator[Standardised]:
    """In an order such that what sets a location or a scale comes before it."""
    left = list(found)
    while left:
        waiting = {p for each in left for p in each.positions}
        ready = [each for each in left if not waiting & each.parents]
        if not ready:
            return  # they depend on each other, and stay as they are
        yield from ready
        left = [each for each in left if each not in ready]


def _unconstrained_size(type_name: str, shape: tuple[int, ...]) -> int:
    """Number of unconstrained scalars of a parameter with this shape."""
    count = int(np.prod(shape))
    if type_name == "simplex":
        return count // shape[-1] * (shape[-1] - 1)
    if type_name in ("cholesky_factor_corr", "corr_matrix"):
        k = shape[-1]
        return count // (k * k) * (k * (k - 1) // 2)
    if type_name == "cov_matrix":
        k = shape[-1]
        return count // (k * k) * (k * (k + 1) // 2)
    if type_name == "cholesky_factor_cov":
        m, n = shape[-2:]
        return count // (m * n) * (n * (n + 1) // 2 + (m - n) * n)
    return count
