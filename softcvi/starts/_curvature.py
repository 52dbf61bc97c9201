"""Covariance of very many parameters: a diagonal, and the widest directions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg
from jaxtyping import Array, Float

from softcvi._compile import rarely_run
from softcvi.starts._base import Moments
from softcvi.starts._double import Density

_PROBES = 32
_RANK = 30


def low_rank_moments(
    x: Float[np.ndarray, " d"], log_density: Any, density: Density
) -> Moments:
    """Moments at a mode by products of the Hessian with vectors alone.

    Args:
        x: The mode.
        log_density: Not used: with so many parameters no draws are evaluated.
        density: The density.
    """
    rng = np.random.default_rng(0)
    point = jnp.asarray(x, density.dtype)
    probes = rng.choice([-1.0, 1.0], size=(_PROBES, x.size))
    products = np.asarray(_products(point, jnp.asarray(probes, point.dtype), density))
    diagonal = np.mean(-products * probes, axis=0)
    typical = np.median(np.abs(diagonal)) + np.finfo(float).tiny
    scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-6 * typical))

    def scaled(v: np.ndarray) -> np.ndarray:
        vector = jnp.asarray((scale * v.ravel())[None], point.dtype)
        return -scale * np.asarray(_products(point, vector, density), np.float64)[0]

    operator = scipy.sparse.linalg.LinearOperator((x.size, x.size), matvec=scaled)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            operator,
            k=min(_RANK, x.size - 2),
            which="SA",
            tol=1e-2,
            maxiter=20,
            v0=rng.normal(size=x.size),
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    values = np.maximum(values, 1e-6)
    wide = np.sqrt(np.maximum(1.0 / values - 1.0, 0.0))
    factor = scale[:, None] * vectors * wide
    return Moments(x, None, scale=scale, factor=factor)


@rarely_run
def _products(
    x: Float[Array, " d"], vectors: Float[Array, "n d"], density: Density
) -> Float[Array, "n d"]:
    return jax.lax.map(lambda v: density.gradient_and_product(x, v)[1], vectors)
