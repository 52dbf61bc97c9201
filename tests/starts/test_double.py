"""Double precision for the search alone, whatever the model closes over."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts import Explore
from softcvi.starts._double import as_density, double_precision

DATA = np.array([[-4.0, 0.1], [4.0, 2.0]])
INDEX = np.array([0, 1, 1, 0])


@jax.custom_jvp
def guarded_log(x):
    return jnp.log(x)


@guarded_log.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return guarded_log(x), t / (x + 1.0)


def everything(x):
    """Loops, branches, gathers, solves, special functions and a rule of its own."""
    total = jax.nn.logsumexp(-0.5 * jnp.sum((x - DATA) ** 2, axis=-1))
    step = lambda c, y: (0.5 * c + y.astype(jnp.float32), c)  # noqa: E731
    total += jax.lax.scan(step, jnp.zeros((), jnp.float32), x)[0]
    total += jnp.sum(x[INDEX] ** 2) + jax.nn.softplus(x[0])
    total += jax.lax.cond(x[0] > 0, lambda a: 2 * a, lambda a: 3 * a, x[0])
    total += jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, 1.0)
    )[1]
    factor = jnp.linalg.cholesky(jnp.eye(2) + 0.1 * jnp.outer(x, x))
    total += jnp.sum(jnp.linalg.solve(factor, x)) + jnp.linalg.slogdet(factor)[1]
    total += jax.scipy.special.gammaln(2 + x[0] ** 2) + jnp.sum(jnp.sort(x))
    return total + guarded_log(2 + x[1] ** 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_derivatives_are_those_of_the_model(compiled):
    function = jax.jit(everything) if compiled else everything
    density = as_density(softcvi.DensityTarget(function, jnp.zeros(2)))
    assert density.widened
    x, v = np.array([0.3, 0.7]), np.array([1.0, -0.5])
    with double_precision():
        value, gradient = eqx.filter_jit(density.value_and_gradient)(jnp.asarray(x))
        _, product = density.gradient_and_product(jnp.asarray(x), jnp.asarray(v))
    assert value.dtype == gradient.dtype == product.dtype == np.float64
    own = jnp.asarray(x, jnp.float32), jnp.asarray(v, jnp.float32)
    np.testing.assert_allclose(value, everything(own[0]), rtol=1e-5)
    np.testing.assert_allclose(gradient, jax.grad(everything)(own[0]), rtol=1e-4)
    there = jax.jvp(jax.grad(everything), own[:1], own[1:])[1]
    np.testing.assert_allclose(product, there, rtol=1e-3, atol=1e-4)


def test_a_product_with_data_in_double_precision():
    """JAX remembers the data in the precision of the first trace, and counts too."""
    rows, counts = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3

    def log_prob(x):
        rate = rows @ x
        return jnp.sum(counts * rate - jnp.exp(rate))

    target = softcvi.DensityTarget(log_prob, jnp.zeros(2))
    programs = jax.jit(target.log_density), jax.grad(target.log_density)
    assert programs[0](jnp.ones(2)).dtype == programs[1](jnp.ones(2)).dtype
    density = as_density(target)
    assert density.widened
    with double_precision():
        value = density.value(jnp.ones(2))
    np.testing.assert_allclose(value, programs[0](jnp.ones(2)), rtol=1e-5)


def test_digits_are_those_of_double_precision():
    target = softcvi.DensityTarget(lambda x: jnp.sum(x) - 1e8, jnp.zeros(1))
    density = as_density(target)
    with double_precision():
        value = density.value(jnp.asarray([0.25]))
    assert float(value) == 0.25 - 1e8


def test_the_session_is_left_as_it_was():
    @jax.jit
    def of_the_user(x):
        return jnp.sum((x - DATA) ** 2)

    before = of_the_user(jnp.zeros(2))
    target = softcvi.DensityTarget(lambda x: -0.5 * of_the_user(x), jnp.zeros(2))
    report = Explore().find(jax.random.key(0), target)
    np.testing.assert_allclose(report.modes[0].mean, DATA.mean(axis=0), atol=0.1)
    assert not jax.config.jax_enable_x64
    assert of_the_user._cache_size() == 1  # nothing was forgotten
    assert of_the_user(jnp.zeros(2)) == before
    assert jax.grad(target.log_density)(jnp.ones(2)).dtype == jnp.float32


def test_a_callback_is_searched_in_the_precision_of_the_fit():
    def density(x):
        like = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(
            lambda x: np.float32(-0.5 * np.sum((np.asarray(x) - 3.0) ** 2, axis=-1)),
            like,
            x,
            vmap_method="expand_dims",
        )

    target = softcvi.DensityTarget(density, jnp.zeros(2))
    assert not target.has_gradient
    assert not as_density(target).widened
    report = Explore().find(jax.random.key(0), target)
    np.testing.assert_allclose(report.modes[0].mean, 3.0, atol=0.2)
    np.testing.assert_allclose(report.modes[0].deviations, 1.0, rtol=0.2)
