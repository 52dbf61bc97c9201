"""Improper posteriors are found, proper ones with odd tails are left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from jax.scipy.stats import t as student_t

import softcvi
from softcvi.adapters import from_callable
from softcvi.diagnostics import improper_directions

Y = jnp.array([0.3, -0.1, 0.7, 1.4])
LIKE = {"a": jnp.zeros(()), "b": jnp.zeros(())}


def found(log_prob, like=LIKE, scale=1.0):
    target = softcvi.DensityTarget(log_prob, like)
    size = target.structure.size
    draws = scale * jax.random.normal(jax.random.key(0), (500, size))
    directions = improper_directions(jax.random.key(1), target, draws)
    return {direction.name for direction in directions}


def flat_without_data(x):
    return norm.logpdf(Y, x["a"], 1.0).sum()


def only_the_sum_is_known(x):
    return norm.logpdf(Y, x["a"] + x["b"], 1.0).sum()


def flat_log_scale(x):
    """p(tau) = 1 / tau, non-centred: infinite mass where tau goes to zero."""
    return (
        norm.logpdf(x["a"]) + norm.logpdf(Y, jnp.exp(x["b"]) * x["a"], 1.0).sum() + 0.0
    )


def separated(x):
    predictors = jnp.array([-2.0, -1.0, 1.0, 2.0])
    logits = x["a"] + jnp.exp(0.0) * x["b"] * predictors
    signs = jnp.array([-1.0, -1.0, 1.0, 1.0])
    return jax.nn.log_sigmoid(signs * logits).sum() + norm.logpdf(x["a"])


@pytest.mark.parametrize(
    ("log_prob", "names"),
    [
        (flat_without_data, {"b"}),
        (flat_log_scale, {"b"}),
        (separated, {"b"}),
    ],
)
def test_infinite_mass_along_a_parameter_is_found(log_prob, names):
    assert found(log_prob) == names


def test_infinite_mass_along_a_sum_is_found():
    assert found(only_the_sum_is_known) <= {"a", "b"}
    assert found(only_the_sum_is_known)


def test_infinite_mass_is_found_from_draws_near_the_largest_number():
    """A fit may run that far before it ends; what lies further out overflows."""

    def classified(x):
        logits = x["b"] * jnp.array([0.5, 1.0, 2.0])
        value = (logits - jnp.maximum(logits, 0) - jnp.log1p(jnp.exp(-logits))).sum()
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    target = softcvi.DensityTarget(classified, {"b": jnp.zeros(())})
    largest = np.finfo(jnp.result_type(float)).max
    draws = largest * 1e-5 * np.random.default_rng(0).uniform(1, 2, (500, 1))
    [direction] = improper_directions(jax.random.key(1), target, draws)
    assert direction.name == "b"


def funnel(x):
    return norm.logpdf(x["a"], 0, 3.0) + norm.logpdf(x["b"], 0, jnp.exp(x["a"] / 2))


def cauchy(x):
    return student_t.logpdf(x["a"], 1.0) + student_t.logpdf(x["b"], 1.0)


def half_cauchy_scale(x):
    tau = jnp.exp(x["a"])
    return -jnp.log1p(tau**2) + x["a"] + norm.logpdf(x["b"], 0, tau)


def very_wide(x):
    return norm.logpdf(x["a"], 0, 1e6) + norm.logpdf(x["b"], 0, 1e-4)


def nearly_a_line(x):
    return norm.logpdf(x["a"] - x["b"], 0, 1e-3) + norm.logpdf(x["a"] + x["b"], 0, 50.0)


@pytest.mark.parametrize(
    "log_prob", [funnel, cauchy, half_cauchy_scale, very_wide, nearly_a_line]
)
def test_proper_posteriors_are_not_called_improper(log_prob):
    assert found(log_prob) == set()


def test_it_is_not_measured_where_evaluations_may_be_expensive():
    target = from_callable(lambda x: 0.0, like={"a": np.zeros(())})
    draws = jnp.ones((100, 1))
    assert improper_directions(jax.random.key(0), target, draws) is None
