"""At guide = posterior the gradient is zero for every set of particles.

The promise of the paper (section on SoftCVI): for every negative, divergence and
temperature. And why the gradient of the negative is stopped.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest

from softcvi import guides, objectives
from softcvi.objectives import Particles, SoftCVI
from softcvi.objectives._contrast import log_predicted, log_soft_labels

K = 8
LOC, SCALE = np.array([0.5, -1.0, 2.0]), np.array([0.5, 2.0, 1.0])
NEGATIVES = {
    "proposal^0": objectives.TemperedProposal(0.0),
    "proposal^0.75": objectives.TemperedProposal(0.75),
    "proposal^1": objectives.TemperedProposal(1.0),
    "proposal^1.5": objectives.TemperedProposal(1.5, allow_outside=True),
    "posterior^0.5": objectives.TemperedPosterior(0.5),
    "posterior^1": objectives.TemperedPosterior(1.0),
    "flat": objectives.FlatNegative(),
    "custom": objectives.CustomNegative(lambda x: -jnp.sum(jnp.abs(x))),
}
DIVERGENCES = {
    "forward KL": objectives.ForwardKL(),
    "reverse KL": objectives.ReverseKL(),
    "Jensen-Shannon": objectives.JensenShannon(),
    "alpha": objectives.Alpha(0.5),
    "chi-squared": objectives.ChiSquared(),
    "Hellinger": objectives.FDivergence(lambda t: (jnp.sqrt(t) - 1) ** 2),
}
TEMPERATURES = (0.5, 1.0, 4.0)


def normal(dtype, loc=LOC):
    return guides.DiagonalNormal(jnp.asarray(loc, dtype), jnp.asarray(SCALE, dtype))


def log_p(x):
    """The same normal up to a constant, not through the guide's parameters."""
    return jnp.sum(jax.scipy.stats.norm.logpdf(x, LOC, SCALE)) + 1.25


COMBINATIONS = [
    (negative, divergence, temperature)
    for negative in NEGATIVES
    for divergence in DIVERGENCES
    for temperature in TEMPERATURES
]


@eqx.filter_jit
def largest_gradients(distribution, values):
    """Largest element of each combination's gradient; one program for them all."""
    lp = jax.vmap(log_p)(values)

    def log_q(wrapped):
        return jax.vmap(paramax.unwrap(wrapped)._log_prob)(values)

    def loss(lq, temperature, negative, divergence):
        objective = SoftCVI(K, negative=negative, divergence=divergence)
        objective = eqx.tree_at(lambda o: o.temperature, objective, temperature)
        particles = Particles(values, lp, lq, jax.lax.stop_gradient(lq))
        return objective.value(particles)[0]

    lq, pull_back = eqx.filter_vjp(log_q, distribution)
    temperatures = jnp.asarray(TEMPERATURES, lq.dtype)
    slopes = jnp.concatenate(
        [
            jax.vmap(jax.grad(loss), in_axes=(None, 0, None, None))(
                lq, temperatures, negative, divergence
            )
            for negative in NEGATIVES.values()
            for divergence in DIVERGENCES.values()
        ]
    )
    (gradients,) = jax.vmap(pull_back)(slopes)
    leaves = jax.tree_util.tree_leaves(gradients)
    return jnp.max(jnp.abs(jnp.concatenate(leaves, axis=1)), axis=1)


@pytest.fixture(scope="module", params=["float32", "float64"])
def precision(request):
    """Gradients at the posterior and away from it, over several sets of particles."""
    with jax.enable_x64(request.param == "float64"):
        dtype = jnp.dtype(request.param)
        rng = np.random.default_rng(0)
        sets = [rng.normal(LOC, SCALE, size=(K, 3)).astype(dtype) for _ in range(5)]
        at = [np.asarray(largest_gradients(normal(dtype), x)) for x in sets]
        off = np.asarray(largest_gradients(normal(dtype, LOC + 0.5 * SCALE), sets[0]))
    bound = 1e-5 if request.param == "float32" else 1e-10
    return bound, np.max(at, axis=0), off


@pytest.mark.parametrize(
    "index", range(len(COMBINATIONS)), ids=lambda i: "-".join(map(str, COMBINATIONS[i]))
)
def test_the_gradient_is_zero_at_the_posterior(precision, index):
    bound, at_posterior, away = precision
    assert at_posterior[index] < bound
    assert away[index] > 1e-3


@jax.jit
def with_and_without_stopping(lp, lq):
    """Gradients in log q of the cross-entropy with alpha = 1."""

    def loss(lq, negative):
        labels = jnp.exp(log_soft_labels(lp, jax.lax.stop_gradient(negative)))
        return -jnp.sum(labels * log_predicted(lq, negative))

    stopped = jax.grad(lambda lq: loss(lq, jax.lax.stop_gradient(lq)))(lq)
    return stopped, jax.grad(lambda lq: loss(lq, lq))(lq)


def test_without_the_stopped_gradient_alpha_one_learns_nothing():
    """Predictions are then uniform whatever the guide: q / q is one."""
    rng = np.random.default_rng(1)
    stopped, free = with_and_without_stopping(
        rng.normal(size=K).astype(np.float32), rng.normal(size=K).astype(np.float32)
    )
    np.testing.assert_allclose(free, 0.0, atol=1e-6)
    assert np.abs(np.asarray(stopped)).max() > 0.05
