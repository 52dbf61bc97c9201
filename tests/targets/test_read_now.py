"""A variable that a log density reads may change between two fits."""

import gc
import weakref

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.targets._read_now import as_read_now

DATA = {"y": np.array([1.0, 3.0]), "table": np.ones((2, 2))}


def _helper(x):
    return x - DATA["y"]


def _log_prob(x):
    return -0.5 * jnp.sum(_helper(x) ** 2)


@eqx.filter_jit
def _compiled(target, particle):
    return target.log_density(particle)


def test_the_density_follows_a_global_variable_that_is_changed_in_place(monkeypatch):
    zero, like = jnp.zeros(()), jnp.zeros(())
    first = softcvi.DensityTarget(_log_prob, like)
    assert float(_compiled(first, zero)) == -5.0
    same = softcvi.DensityTarget(_log_prob, like)
    # One program for both.
    assert same.log_prob is first.log_prob
    monkeypatch.setitem(DATA, "y", np.array([1.0, 3.0]))
    assert softcvi.DensityTarget(_log_prob, like).log_prob is first.log_prob
    DATA["y"][0] = 0.0
    changed = softcvi.DensityTarget(_log_prob, like)
    assert float(_compiled(changed, zero)) == -4.5
    again = softcvi.DensityTarget(_log_prob, like)
    assert again.log_prob is changed.log_prob


def test_the_density_follows_a_variable_of_the_function_around_it():
    centre = 3.0

    def log_prob(x):
        return -0.5 * (x - centre) ** 2

    values = []
    for centre in (3.0, 1.0):  # noqa: B007
        target = softcvi.DensityTarget(log_prob, jnp.zeros(()))
        values.append(float(_compiled(target, jnp.zeros(()))))
    assert values == [-4.5, -0.5]


def test_a_numpyro_model_follows_its_data():
    numpyro = pytest.importorskip("numpyro")
    y = np.array([2.0])

    def model():
        mu = numpyro.sample("mu", numpyro.distributions.Normal())
        numpyro.sample("y", numpyro.distributions.Normal(mu), obs=y)

    particle = {"mu": jnp.zeros(())}
    before = _compiled(softcvi.adapters.from_numpyro(model), particle)
    y = np.array([0.0])
    after = _compiled(softcvi.adapters.from_numpyro(model), particle)
    np.testing.assert_allclose(after - before, 2.0, rtol=1e-6)


def test_any_value_can_be_read():
    itself: list = [1]
    itself.append(itself)
    odd = {1: jnp.ones(2), "a": np.array(["x"], object), (2,): {3, 4}}
    empty = np.zeros((0, 2)), np.array(1.0), np.ones((3, 2)).T

    def log_prob(x):
        return x * len(odd) * len(itself) * len(empty) * later

    assert as_read_now(log_prob) is log_prob
    assert as_read_now(log_prob) is log_prob
    odd[1] = jnp.ones(2)
    assert as_read_now(log_prob) is not log_prob
    later = 1.0


def test_functions_and_their_data_are_forgotten():
    data = jnp.ones(3)

    def log_prob(x):
        return jnp.sum(x * data)

    as_read_now(log_prob)
    gone = weakref.ref(log_prob)
    del log_prob
    gc.collect()
    assert gone() is None
