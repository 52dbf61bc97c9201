"""Log densities that JAX differentiates once, or not at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaincc
from jax.scipy.stats import gamma

import softcvi
from softcvi.adapters import from_numpyro
from softcvi.targets._derivatives import num_derivatives, twice_differentiable

CENTRE = jnp.array([3.0, -1.0])
TIMES = jnp.array([0.5, 1.2, 0.8, 2.0, 0.3, 1.7])


@jax.custom_vjp
def adjoint(a):
    """As a solver with an adjoint has it: a gradient, and no derivative of that."""
    return -0.5 * jnp.sum((a - CENTRE) ** 2 * jnp.array([1.0, 4.0]))


def backward(a, g):
    return (-g * (a - CENTRE) * jnp.array([1.0, 4.0]),)


adjoint.defvjp(lambda a: (adjoint(a), a), backward)


def censored(x):
    """Survival times of a gamma distribution, beyond 1.5 only that they are."""
    shape, rate = jnp.exp(x["shape"]), jnp.exp(x["rate"])
    seen = gamma.logpdf(TIMES * rate, shape) + x["rate"]
    beyond = jnp.log(gammaincc(shape, 1.5 * rate))
    prior = -0.5 * (x["shape"] ** 2 + x["rate"] ** 2)
    return prior + jnp.where(TIMES > 1.5, beyond, seen).sum()


def called_back(a):
    shape = jax.ShapeDtypeStruct((), a.dtype)
    host = lambda a: np.asarray(-0.5 * np.sum(np.square(a)), a.dtype)  # noqa: E731
    return jax.pure_callback(host, shape, a, vmap_method="sequential")


def test_derivatives_are_counted():
    assert num_derivatives(adjoint, jnp.zeros(2)) == 1
    assert num_derivatives(censored, {"shape": 0.0, "rate": 0.0}) == 1
    assert num_derivatives(called_back, jnp.zeros(2)) == 0
    assert num_derivatives(lambda a: jnp.sum(a**3), jnp.zeros(2)) == 2


def test_second_derivatives_are_differences_of_gradients():
    at = jnp.array([0.3, 0.2])
    twice = twice_differentiable(adjoint)
    np.testing.assert_allclose(twice(at), adjoint(at))
    np.testing.assert_allclose(jax.grad(twice)(at), jax.grad(adjoint)(at), rtol=1e-6)
    hessian = jax.jit(jax.hessian(twice))(at)
    np.testing.assert_allclose(hessian, np.diag([-1.0, -4.0]), atol=1e-4)


def test_a_gradient_is_enough():
    target = softcvi.DensityTarget(lambda x: adjoint(x["a"]), {"a": jnp.zeros(2)})
    assert target.has_gradient
    result = softcvi.fit(jax.random.key(0), target, steps=500, progress=False)
    assert "Newton" in result.choices["start"]
    assert result.verdict.trusted
    draws = result.sample(jax.random.key(1), 20_000)["a"]
    np.testing.assert_allclose(draws.mean(0), CENTRE, atol=0.05)
    np.testing.assert_allclose(draws.std(0), [1.0, 0.5], rtol=0.05)


@pytest.mark.slow
def test_incomplete_gamma_functions_are_fitted():
    target = softcvi.DensityTarget(censored, {"shape": 0.0, "rate": 0.0})
    result = softcvi.fit(jax.random.key(0), target, steps=2_000, progress=False)
    assert result.verdict.trusted
    grid = jnp.linspace(-4, 4, 161)
    a, b = jnp.meshgrid(grid, grid, indexing="ij")
    values = jax.vmap(censored)({"shape": a.ravel(), "rate": b.ravel()})
    weights = np.asarray(jax.nn.softmax(values)).reshape(a.shape)
    mean = float((weights.sum(1) * grid).sum())
    sd = float(np.sqrt((weights.sum(1) * (grid - mean) ** 2).sum()))
    draws = result.sample(jax.random.key(1), 20_000)["shape"]
    np.testing.assert_allclose(draws.mean(), mean, atol=0.05 * sd)
    np.testing.assert_allclose(draws.std(), sd, rtol=0.05)


def test_numpyro_models_need_no_derivatives():
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions

    def model(log_likelihood):
        a = numpyro.sample("a", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("likelihood", log_likelihood(a))

    assert not from_numpyro(model, called_back).has_gradient
    target = from_numpyro(model, adjoint)
    assert target.has_gradient
    hessian = jax.hessian(lambda a: target.log_density({"a": a}))(jnp.zeros(2))
    np.testing.assert_allclose(hessian, np.diag([-2.0, -5.0]), atol=1e-3)
