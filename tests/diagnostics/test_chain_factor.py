"""In which directions chains move with many parameters."""

import jax.numpy as jnp
import numpy as np

from softcvi.diagnostics import _hamiltonian
from softcvi.guides import low_rank, mean_field, whitened


def test_the_matrix_of_a_start_is_used_however_many_parameters(monkeypatch):
    """Standard deviations alone are too little where neighbours go together."""
    monkeypatch.setattr(_hamiltonian, "_MAX_DENSE", 110)
    size = 120
    matrix = np.eye(size) - 0.5 * np.eye(size, k=-1)
    vectors = np.random.default_rng(0).normal(size=(50, size))
    guide = whitened(mean_field(jnp.zeros(size)), jnp.zeros(size), matrix)
    factor = _hamiltonian.factor_of(guide, vectors)
    np.testing.assert_allclose(factor, matrix, atol=1e-6)
    assert _hamiltonian.factor_of(low_rank(jnp.zeros(size)), vectors).ndim == 1
