"""The battery of every divergence between labels and predictions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi import objectives

CASES = {
    objectives.ForwardKL: objectives.ForwardKL(),
    objectives.ReverseKL: objectives.ReverseKL(),
    objectives.JensenShannon: objectives.JensenShannon(),
    objectives.Alpha: objectives.Alpha(0.3),
    objectives.ChiSquared: objectives.ChiSquared(),
    objectives.FDivergence: objectives.FDivergence(lambda t: (jnp.sqrt(t) - 1) ** 2),
}


def direct(cls, p, q):
    """The definition, on probabilities, in NumPy."""
    m = (p + q) / 2
    if cls is objectives.ForwardKL:
        return -np.sum(p * np.log(q))
    if cls is objectives.ReverseKL:
        return np.sum(q * np.log(q / p))
    if cls is objectives.JensenShannon:
        return 0.5 * np.sum(p * np.log(p / m)) + 0.5 * np.sum(q * np.log(q / m))
    if cls is objectives.Alpha:
        return (np.sum(p**0.3 * q**0.7) - 1) / (0.3 * (0.3 - 1))
    if cls is objectives.ChiSquared:
        return np.sum((p - q) ** 2 / q)
    return np.sum(q * (np.sqrt(p / q) - 1) ** 2)


def test_the_battery_knows_every_exported_divergence(exported):
    assert exported(objectives, objectives.AbstractDivergence) == set(CASES)


@eqx.filter_jit
def program(divergence, log_labels, logits):
    def value(logits, log_labels):
        return divergence(log_labels, jax.nn.log_softmax(logits))

    return jax.vmap(jax.value_and_grad(value))(logits, log_labels)


@pytest.mark.parametrize("cls", CASES, ids=lambda cls: cls.__name__)
def test_values_and_gradients(cls, dtype):
    rng = np.random.default_rng(0)
    labels = rng.dirichlet(np.ones(5), size=6)
    labels[1:3] = [0.0, 0.1, 0.2, 0.3, 0.4]
    logits = rng.normal(size=(6, 5))
    # Row 0 agrees with its labels, row 1 has a label of zero, row 2 a lost prediction.
    logits[0] = np.log(labels[0]) + 2.0
    logits[2, 0] = -1e4
    with np.errstate(divide="ignore"):
        log_labels = np.log(labels).astype(dtype)
    value, gradient = program(CASES[cls], log_labels, logits.astype(dtype))

    assert value.shape == (6,)
    assert value.dtype == dtype
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
    rounding = 2e-6 if dtype == jnp.float32 else 1e-12
    np.testing.assert_allclose(gradient[0], 0.0, atol=rounding)
    predictions = np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)
    rows = [0, 3, 4, 5]
    exact = [direct(cls, labels[i], predictions[i]) for i in rows]
    np.testing.assert_allclose(
        np.asarray(value)[rows], exact, rtol=20 * rounding, atol=rounding
    )
    # Smallest where they agree: every other row does worse than its own labels.
    best, _ = program(CASES[cls], log_labels, log_labels)
    assert np.all(np.asarray(value)[3:] > np.asarray(best)[3:])
