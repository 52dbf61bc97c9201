"""Mixtures of t densities: what adaptive importance sampling draws from."""

import functools
import math

import equinox as eqx
import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float

_DF = 7.0
_JITTER = 1e-10


class TMixture(eqx.Module):
    """A mixture of multivariate t densities.

    Attributes:
        log_weights: Log weights, which sum to one.
        means: Centres.
        factors: Cholesky factors of the covariances of the normals that the t widen.
        df: Degrees of freedom.
    """

    log_weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k d"]
    factors: Float[np.ndarray, "k d d"]
    df: float = _DF

    def draw(
        self, rng: np.random.Generator, n: int
    ) -> tuple[Float[np.ndarray, "n d"], np.ndarray]:
        """Draws, and which part each is from; the numbers of draws are not random."""
        shares = np.cumsum(np.exp(self.log_weights))
        part = np.searchsorted(shares / shares[-1], (np.arange(n) + 0.5) / n)
        part = np.minimum(part, len(self.means) - 1)
        dim = self.means.shape[1]
        t = rng.normal(size=(n, dim))
        t = t / np.sqrt(rng.chisquare(self.df, size=(n, 1)) / self.df)
        draws = np.empty((n, dim))
        for k, factor in enumerate(self.factors):
            own = part == k
            draws[own] = self.means[k] + t[own] @ factor.T
        return draws, part

    def squares(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Squared distances from every centre, in the units of its factor."""
        columns = []
        for mean, factor in zip(self.means, self.factors, strict=True):
            inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1)
            columns.append(np.sum(((x - mean) @ inverse.T) ** 2, axis=1))
        return np.stack(columns, axis=1)

    def log_parts(
        self, squares: Float[np.ndarray, "n k"], width: float = 1.0
    ) -> Float[np.ndarray, "n k"]:
        """Weighted log density of every part.

        Args:
            squares: Squared distances from the centres.
            width: Factor by which every part is widened.
        """
        dim, df = self.means.shape[1], self.df
        constant = math.lgamma((df + dim) / 2) - math.lgamma(df / 2)
        constant -= 0.5 * dim * math.log(df * math.pi) + dim * math.log(width)
        diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        log_dets = np.sum(np.log(diagonals), axis=1)
        tails = -0.5 * (df + dim) * np.log1p(squares / (width**2 * df))
        return self.log_weights + constant - log_dets + tails

    def log_density(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Log density of the mixture."""
        return log_sum(self.log_parts(self.squares(x)))


@functools.cache
def share_on_normal(dim: int) -> float:
    """Share of effective draws of a t as proposal for the normal that it widens.

    No t can do better on a normal posterior, and it falls with the dimension.

    Args:
        dim: Number of parameters.

    Example:
        >>> [round(share_on_normal(dim), 2) for dim in (1, 10, 50)]
        [0.97, 0.79, 0.47]
    """
    square = 2 * scipy.special.gammaincinv(dim / 2, (np.arange(2000) + 0.5) / 2000)
    log_ratio = 0.5 * (_DF + dim) * np.log1p(square / _DF) - 0.5 * square
    log_ratio += math.lgamma(_DF / 2) - math.lgamma((_DF + dim) / 2)
    return float(1 / np.mean(np.exp(log_ratio + 0.5 * dim * math.log(_DF / 2))))


def log_sum(log_parts: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Log of the sum over the parts."""
    top = np.max(log_parts, axis=1)
    return top + np.log(np.sum(np.exp(log_parts - top[:, None]), axis=1))


def factor_of(
    covariance: Float[np.ndarray, "d d"], least: float = _JITTER
) -> Float[np.ndarray, "d d"]:
    """Cholesky factor, with as much added to the diagonal as it needs.

    Args:
        covariance: The matrix.
        least: Share of the diagonal that is added in any case.
    """
    diagonal = np.diag(np.diagonal(covariance))
    for jitter in (least, _JITTER, 1e-8, 1e-6, 1e-4):
        try:
            return np.linalg.cholesky(covariance + jitter * diagonal)
        except np.linalg.LinAlgError:
            continue
    return np.sqrt(np.abs(diagonal) + np.finfo(float).tiny)
