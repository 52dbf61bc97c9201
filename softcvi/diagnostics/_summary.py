"""A table of posterior summaries."""

from collections.abc import Container, Mapping

import numpy as np
from jax.typing import ArrayLike


def summarise(
    draws: Mapping[str, ArrayLike], log_weights: ArrayLike | None = None
) -> list[dict[str, float | str]]:
    """Mean, sd and quantiles of each scalar, importance-weighted if weights are given.

    Args:
        draws: Named arrays with a leading axis of draws.
        log_weights: Normalised log weights of the draws.

    Returns:
        One row per scalar with ``name, mean, sd, q5, median, q95``.

    Example:
        >>> import numpy as np
        >>> from softcvi.diagnostics import summarise
        >>> rows = summarise({"x": np.array([[0.0], [2.0]])})
        >>> rows[0]["name"], rows[0]["mean"]
        ('x[0]', 1.0)
    """
    rows: list[dict[str, float | str]] = []
    for name, values in draws.items():
        values = np.asarray(values, np.float64)
        weights = np.full(values.shape[0], 1.0 / values.shape[0])
        if log_weights is not None:
            weights = np.exp(np.asarray(log_weights, np.float64))
        for index in np.ndindex(values.shape[1:]):
            label = label_of(name, index, draws)
            rows.append({"name": label, **_row(values[(slice(None), *index)], weights)})
    return rows


def label_of(name: str, index: tuple[int, ...], names: Container[str]) -> str:
    """The name of a scalar, which no parameter has itself.

    Args:
        name: The name of its array.
        index: Its place there.
        names: All parameters: one may be called as the scalar of another would be.

    Example:
        >>> label_of("x", (1,), ["x"]), label_of("x", (1,), ["x", "x[1]"])
        ('x[1]', 'x[1] of x')
    """
    label = name + (f"[{','.join(map(str, index))}]" if index else "")
    while index and label in names:
        label = f"{label} of {name}"
    return label


def _row(column: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    # A far draw without weight may be infinite, and zero times infinity is NaN.
    column, weights = column[weights > 0], weights[weights > 0]
    # Not a product of vectors, which NumPy makes on threads that wait for each other.
    mean = float(np.sum(weights * column))
    sd = float(np.sqrt(np.sum(weights * (column - mean) ** 2)))
    order = np.argsort(column)
    cumulative = np.cumsum(weights[order])
    picks = np.searchsorted(cumulative, [0.05, 0.5, 0.95])
    q5, median, q95 = column[order][np.minimum(picks, column.size - 1)]
    return {
        "mean": mean,
        "sd": sd,
        "q5": float(q5),
        "median": float(median),
        "q95": float(q95),
    }
