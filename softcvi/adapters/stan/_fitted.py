"""Numbers at a few points as affine functions of parameters, or as none."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from softcvi.adapters.stan._decentre import Affine
from softcvi.adapters.stan._scalars import Scalars, Term

# Points at which a dependence is checked, beyond those that determine it.
MORE = 4
# Parameters whose products are looked at.
_MOST_FACTORS = 8
_ROUNDING = 1e-8


def fitted(
    values: np.ndarray, parents: Sequence[Term], points: np.ndarray
) -> Affine | None:
    """Numbers as affine in parameters and, if need be, in products of two of them.

    Args:
        values: The numbers, by rows.
        parents: Parameters that they may depend on.
        points: Unconstrained vectors, a row for each row of values.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(20, 2))
        >>> both = [Term(0, "free"), Term(1, "free")]
        >>> found = fitted(3 * points[:, :1] * points[:, 1:], both, points)
        >>> found.pairs.tolist(), found.slopes.round(3).tolist()
        ([[0, 1]], [[0.0, 0.0, 3.0]])
    """
    features = _columns([term.value(points) for term in parents], points)
    none = np.zeros((0, 2), int)
    slopes, offsets = _least_squares(features, values)
    if slopes is not None:
        return _of_used(parents, slopes, offsets, none)
    count = len(parents)
    pairs = np.array(list(combinations_with_replacement(range(count), 2)), int)
    if not 0 < count <= _MOST_FACTORS or len(pairs) + count + MORE >= len(points):
        return None
    products = features[:, pairs[:, 0]] * features[:, pairs[:, 1]]
    slopes, offsets = _least_squares(np.hstack([features, products]), values)
    return None if slopes is None else _of_used(parents, slopes, offsets, pairs)


def fitted_logs(
    values: np.ndarray, parents: Sequence[Term], points: np.ndarray
) -> Affine | None:
    """Logarithms of numbers as affine in those of parameters; None if they are fixed.

    Args:
        values: The numbers, by rows.
        parents: Parameters that they may depend on.
        points: Unconstrained vectors, a row for each row of values.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(20, 1))
        >>> found = fitted_logs(np.exp(2 * points), [Term(0, "lower")], points)
        >>> found.slopes.round(3).tolist()
        [[2.0]]
    """
    if not np.all(values > 0):
        return None
    parents = [term for term in parents if term.is_positive]
    features = _columns([np.log(term.value(points)) for term in parents], points)
    slopes, offsets = _least_squares(features, np.log(values))
    if slopes is None or not np.any(slopes):
        return None
    none = np.zeros((0, 2), int)
    return _of_used(parents, slopes, offsets, none, is_log=True)


def _columns(columns: list[np.ndarray], points: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=1) if columns else np.zeros((len(points), 0))


def _least_squares(
    features: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """Slopes, numbers by features, and offsets; no slopes where it does not fit."""
    design = np.column_stack([features, np.ones(len(features))])
    fit = np.linalg.lstsq(design, values, rcond=None)[0]
    close = np.allclose(design @ fit, values, rtol=_ROUNDING, atol=_ROUNDING)
    fit[np.abs(fit) < _ROUNDING] = 0.0
    return (fit[:-1].T if close else None), fit[-1]


def _of_used(
    parents: Sequence[Term],
    slopes: np.ndarray,
    offsets: np.ndarray,
    pairs: np.ndarray,
    *,
    is_log: bool = False,
) -> Affine:
    """Without the parameters and products that nothing depends on."""
    count = len(parents)
    single, double = np.split(np.any(slopes, axis=0), [count])
    kept = np.flatnonzero(single | np.isin(np.arange(count), pairs[double]))
    slopes = np.hstack([slopes[:, kept], slopes[:, count:][:, double]])
    return Affine(
        Scalars.of([parents[i] for i in kept.tolist()]),
        slopes,
        offsets,
        is_log,
        np.searchsorted(kept, pairs[double]).reshape(-1, 2),
    )
