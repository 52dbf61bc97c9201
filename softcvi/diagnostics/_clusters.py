"""Groups of points that lie apart from each other."""

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

_NEIGHBOURS = 10
_SMALLEST_CLUSTER = 0.03


def clusters(x: Float[np.ndarray, "n d"]) -> np.ndarray:
    """Groups of points that a graph of nearest neighbours connects."""
    z = (x - x.mean(axis=0)) / (np.std(x, axis=0) + np.finfo(float).tiny)
    square = np.sum(z**2, axis=1)
    distance = square[:, None] + square - 2 * z @ z.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1)[:, :_NEIGHBOURS]
    n = len(x)
    rows = np.repeat(np.arange(n), _NEIGHBOURS)
    graph = csr_matrix((np.ones(rows.size), (rows, nearest.ravel())), (n, n))
    count, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= max(_SMALLEST_CLUSTER * n, x.shape[1] + 2))
    if len(large) <= 1:
        return np.zeros(n, int)
    centres = np.stack([z[labels == label].mean(axis=0) for label in range(count)])
    gaps = np.sum((centres[:, None] - centres[large]) ** 2, axis=-1)
    return np.argmin(gaps, axis=1)[labels]


def chain_modes(
    mean: Float[np.ndarray, "n d"], square: Float[np.ndarray, "n d"]
) -> np.ndarray:
    """Numbers of modes that chains stay in, which differ in place or in width.

    A narrow mode inside of a wide one has no place of its own; chains of one are as
    wide as that mode all the same.

    Args:
        mean: Average over each chain.
        square: Average of the square over each chain.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> mean, square = np.zeros((200, 2)), rng.uniform(0.5, 2, (200, 2))
        >>> square[:50] *= 1e4
        >>> np.bincount(chain_modes(mean, square)).tolist()
        [50, 150]
    """
    variance = np.maximum(square - mean**2, np.finfo(float).tiny)
    # A parameter that is cut off in a heavy tail seems not to vary at all.
    width = np.median(np.log(variance), axis=1, keepdims=True)
    both = np.stack([clusters(mean), clusters(width)], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].ravel()


def factor_within(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"] | None:
    """A factor of the covariance within groups; None where there is one group.

    Args:
        x: The points.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(200, 1))
        >>> x[:100] += 50.0
        >>> bool(abs(factor_within(x)[0, 0] - 1) < 0.2), factor_within(x[:100])
        (True, None)
    """
    labels = clusters(x)
    if labels.max() == 0 or len(x) < 2 * x.shape[1]:
        return None
    groups = [x[labels == label] for label in range(labels.max() + 1)]
    centred = np.concatenate([group - group.mean(axis=0) for group in groups])
    covariance = centred.T @ centred / len(x)
    ridge = 1e-9 * np.diag(np.diagonal(covariance) + np.finfo(float).tiny)
    return np.linalg.cholesky(covariance + ridge)
