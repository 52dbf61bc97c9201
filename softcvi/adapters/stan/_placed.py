"""Where the hierarchies of a program lie in its unconstrained vector."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from softcvi.adapters.stan._decentre import Affine, Standardised, Walk
from softcvi.adapters.stan._expression import Expression, UnknownExpressionError
from softcvi.adapters.stan._hierarchies import Hierarchy
from softcvi.adapters.stan._members import Members, evaluated, in_order
from softcvi.adapters.stan._program import AbstractProgram, Layout

# Scalars that a location or a scale may depend on.
_MOST_PARENTS = 60
# Points at which a dependence is checked, beyond those that determine it.
_MORE = 4


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
    if not candidates:
        return ()
    where, start = {}, 0
    for name, shape in Layout(program.names[0]).shapes:
        size = _unconstrained_size(types.get(name, "real"), shape)
        where[name] = tuple(range(start, start + size))
        start += size
    if start != program.size:
        return ()
    probe = _Probe(program, where, {} if data is None else data)
    found = [probe.standardised(each) for each in candidates if each.name in where]
    return tuple(_parents_first([each for each in found if each is not None]))


class _Probe:
    """Values of a program at a few points, which tell how they depend on each other."""

    def __init__(
        self,
        program: AbstractProgram,
        where: Mapping[str, tuple[int, ...]],
        data: Mapping[str, Any],
    ):
        shape = (_MOST_PARENTS + _MORE + 2, program.size)
        points = np.random.default_rng(0).uniform(-1, 1, shape)
        # The last is far out, where a bounded parameter is at its bound.
        points[-1] = 40.0
        names = [*program.names[0], *program.names[1]]
        rows = program.constrain(points, np.zeros(len(points), np.uint64))
        values = Layout(names).split(rows[:, : len(names)])
        self.where, self.data = where, data
        self.bounds = {name: value[-1] for name, value in values.items()}
        self.points = points[:-1]
        self.values = {name: value[:-1] for name, value in values.items()}

    def standardised(self, each: Hierarchy) -> Standardised | None:
        """A hierarchy, if its parts are what they seem to be."""
        own = self._upper(each.name) if each.is_positive else self._is_free(each.name)
        if own != np.inf:
            return None
        if each.members is not None:
            found = self._of_members(each, each.members)
            if found is not None:
                return found
        try:
            location = self._affine(each, each.location, is_log=False)
            log_scale = self._affine(each, each.scale, is_log=True)
        except UnknownExpressionError:
            return None
        if location is None or log_scale is None or not np.any(log_scale.slopes):
            return None
        return Standardised(each.name, self.where[each.name], location, log_scale)

    def _of_members(self, each: Hierarchy, members: Members) -> Standardised | None:
        """A hierarchy or a random walk of the members that a statement is about."""
        positions = np.array(self.where[each.name])
        own = self.values[each.name]
        which = np.arange(positions.size).reshape(own.shape[1:])
        values = {name: np.moveaxis(v, 0, -1) for name, v in self.values.items()}
        # Each own scalar a little further, one after the other, where all else stays.
        here = {name: value[..., :1] for name, value in values.items()}
        moved = self.points[0, positions] + np.eye(positions.size + 1)[:, 1:]
        moved = np.exp(moved) if each.is_positive else moved
        here[each.name] = np.moveaxis(moved.reshape(-1, *own.shape[1:]), 0, -1)
        try:
            found = evaluated(members, which, values, self.data)
            changes = evaluated(members, which, here, self.data).location
            names = frozenset().union(
                *(Expression(t).names for t in (members.location, members.scale))
            )
        except UnknownExpressionError:
            return None
        if len(np.unique(found.at)) < len(found.at):
            return None
        shape = (len(found.at), 1 + positions.size)
        changes = np.broadcast_to(changes, shape)
        slopes = changes[:, 1:] - changes[:, :1]
        slopes[np.abs(slopes) < 1e-8] = 0.0
        order = in_order(slopes[:, found.at])
        if order is None:
            return None
        at, slopes = found.at[order], slopes[order]
        rest = found.location[order] - slopes @ self.points[:, positions].T
        names = names - {each.name}
        scale = np.broadcast_to(found.scale[order], rest.shape)
        location = self._fitted(rest.T, names, is_log=False)
        log_scale = self._fitted(scale.T, names, is_log=True)
        if location is None or log_scale is None or not np.any(log_scale.slopes):
            return None
        # Members without a statement, such as the first, are parents of the others.
        others = np.setdiff1d(np.flatnonzero(np.any(slopes, axis=0)), at)
        location = location.plus(positions[others], slopes[:, others])
        walk = Walk.of(slopes[:, at]) if np.any(slopes[:, at]) else None
        places = tuple(positions[at].tolist())
        return Standardised(each.name, places, location, log_scale, walk)

    def _affine(self, each: Hierarchy, text: str, *, is_log: bool) -> Affine | None:
        """How an expression, or its logarithm, depends on parameters; None if else."""
        expression = Expression(text)
        if each.name in expression.names:
            return None
        values = self._over_members(each, expression)
        if values is None:
            return None
        return self._fitted(values, expression.names, is_log=is_log)

    def _fitted(
        self, values: np.ndarray, names: frozenset[str], *, is_log: bool
    ) -> Affine | None:
        """Numbers at all points, one column for each, as affine in parameters."""
        if is_log and not np.all(values > 0):
            return None
        values = np.log(values) if is_log else values
        positions, uppers = self._candidates(names, is_log)
        features = self.points[:, positions]
        if is_log:
            bounded = np.log(np.where(np.isfinite(uppers), uppers, 1.0))
            bounded = bounded - np.log1p(np.exp(-features))
            features = np.where(np.isfinite(uppers), bounded, features)
        design = np.column_stack([features, np.ones(len(features))])
        fit = np.linalg.lstsq(design, values, rcond=None)[0]
        if not np.allclose(design @ fit, values, rtol=1e-8, atol=1e-8):
            return None
        fit[np.abs(fit) < 1e-8] = 0.0
        used = np.any(fit[:-1] != 0, axis=1)
        return Affine(
            tuple(positions[used].tolist()),
            tuple(map(tuple, fit[:-1][used].T.tolist())),
            tuple(fit[-1].tolist()),
            tuple(uppers[used].tolist()) if is_log else None,
        )

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

    def _candidates(
        self, names: frozenset[str], is_log: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions that an expression may depend on, with bounds of positive ones.

        A transformed parameter may depend on any scalar parameter.
        """
        is_made = any(n in self.values and n not in self.where for n in names)
        positions: list[int] = []
        uppers: list[float] = []
        for name, at in self.where.items():
            if name not in names and not (is_made and len(at) == 1):
                continue
            upper = self._upper(name) if is_log else self._is_free(name)
            if upper is not None and len(positions) + len(at) <= _MOST_PARENTS:
                positions += at
                uppers += [upper] * len(at)
        return np.array(positions, int), np.array(uppers, float)

    def _is_free(self, name: str) -> float | None:
        value, u = self._flat(name)
        return np.inf if value.shape == u.shape and np.allclose(value, u) else None

    def _upper(self, name: str) -> float | None:
        """Upper bound of a positive parameter; None for one that is not positive."""
        value, u = self._flat(name)
        if value.shape != u.shape:
            return None
        if np.allclose(value, np.exp(u)):
            return np.inf
        upper = float(np.max(self.bounds[name]))
        is_bounded = 0 < upper < np.inf and np.allclose(value, upper / (1 + np.exp(-u)))
        return upper if is_bounded else None

    def _flat(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        value = self.values[name].reshape(len(self.points), -1)
        return value, self.points[:, list(self.where[name])]


def _parents_first(found: list[Standardised]) -> Iterator[Standardised]:
    """In an order such that what sets a location or a scale comes before it."""
    left = list(found)
    while left:
        waiting = {p for each in left for p in each.positions}
        ready = [each for each in left if not waiting & _parents(each)]
        if not ready:
            return  # they depend on each other, and stay as they are
        yield from ready
        left = [each for each in left if each not in ready]


def _parents(each: Standardised) -> set[int]:
    return {*each.location.positions, *each.log_scale.positions}


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
