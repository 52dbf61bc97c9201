"""The start: arrays that a model closes over, scales, modes; and what follows it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.starts._importance import adapt
from softcvi.starts._ridges import along, line, ridge

CENTRES = np.array([[-4.0, 0.0], [4.0, 2.0]])
WEIGHTS = np.array([0.7, 0.3])


def two_modes(theta):
    parts = -0.5 * jnp.sum((theta["x"] - CENTRES) ** 2, axis=-1)
    return jax.nn.logsumexp(parts + jnp.log(WEIGHTS))


@pytest.mark.parametrize(
    ("compiled", "fits"), [(False, 1), pytest.param(True, 2, marks=pytest.mark.slow)]
)
def test_arrays_of_doubles_survive_the_look_in_double_precision(compiled, fits):
    """A second time too, though programs of the first fit remember the precision."""
    density = jax.jit(two_modes) if compiled else two_modes
    target = softcvi.DensityTarget(density, {"x": jnp.zeros(2)})
    for seed in range(fits):
        key = jax.random.key(seed)
        result = softcvi.fit(key, target, steps=200, progress=False)
        assert "2 mode(s)" in result.choices["start"]
        assert result.posterior.sample(key, 10)["x"].dtype == jnp.float32


def test_a_model_that_insists_on_single_precision_gets_it():
    def density(theta):
        step = lambda total, x: (total - 0.5 * x.astype(jnp.float32) ** 2, None)  # noqa: E731
        return jax.lax.scan(step, jnp.zeros((), jnp.float32), theta["x"])[0]

    target = softcvi.DensityTarget(density, {"x": jnp.zeros(3)})
    result = softcvi.fit(jax.random.key(0), target, steps=100, progress=False)
    assert "1 mode(s)" in result.choices["start"]


def test_rare_modes_are_looked_for_once_there_are_two():
    """A twentieth of all starts lead to the third mode."""
    centres = jnp.asarray([[-8.0], [0.0], [8.0]])

    def density(theta):
        parts = -0.5 * jnp.sum((theta["x"] - centres) ** 2, axis=-1)
        return jax.nn.logsumexp(parts)

    def initial(key):
        pick_key, noise_key = jax.random.split(key)
        at = jax.random.choice(pick_key, centres, p=jnp.asarray([0.475, 0.475, 0.05]))
        return {"x": at + jax.random.normal(noise_key, (1,))}

    target = softcvi.DensityTarget(density, {"x": jnp.zeros(1)}, initial=initial)
    result = softcvi.fit(jax.random.key(0), target, steps=2000, progress=False)
    np.testing.assert_allclose(result.posterior.guide.weights, 1 / 3, atol=0.03)
    assert "3 mode(s)" in result.choices["start"]


@pytest.mark.parametrize(("name", "is_far"), [("normal", False), ("t", True)])
def test_the_start_tells_a_normal_from_heavier_tails(name, is_far):
    """The fifth moments of a t with five degrees of freedom do not even exist."""
    densities = {
        "normal": lambda x: -0.5 * np.sum(x**2, axis=1),
        "t": lambda x: -4.5 * np.log1p(np.sum(x**2, axis=1) / 5.0),
    }
    start = (np.zeros(4), np.eye(4))
    moments = adapt(np.random.default_rng(0), densities[name], [start]).modes[0]
    assert (moments.departure > 0.75) == is_far


def test_parts_that_fit_keep_their_moments_while_masses_are_found():
    """Moments of weighted draws would have an error that grows with the dimension."""
    apart = np.zeros((2, 40))
    apart[1, 0] = 20.0

    def log_density(x):
        squares = np.sum((x[:, None] - apart) ** 2, axis=-1)
        return np.logaddexp(
            np.log(0.97) - 0.5 * squares[:, 0], np.log(0.03) - 0.5 * squares[:, 1]
        )

    starts = [(mean, np.eye(40)) for mean in apart]
    fitted = adapt(np.random.default_rng(0), log_density, starts)
    for mode, mean, share in zip(fitted.modes, apart, (0.97, 0.03), strict=True):
        np.testing.assert_array_equal(mode.mean, mean)
        np.testing.assert_array_equal(mode.covariance, np.eye(40))
        off = mode.log_evidence - fitted.log_evidence - np.log(share)
        assert abs(off) < 4 * mode.log_evidence_error


def test_two_points_of_a_bent_ridge_are_not_two_modes():
    """The line between them is in a valley, the way along the ridge is not."""

    def bent(x):
        return -0.5 * (x[0] / 3.0) ** 2 - 0.5 * ((x[1] - 0.5 * x[0] ** 2) / 0.3) ** 2

    def apart(x):
        return jax.nn.logsumexp(-0.5 * jnp.sum((x - modes) ** 2, axis=-1))

    ends = jnp.array([[-3.0, 4.5], [3.0, 4.5]])
    modes = jnp.asarray(CENTRES, jnp.float32)
    for density, (a, b), joined in ((bent, ends, True), (apart, modes, False)):
        straight = np.asarray(along(density, line(a, b)))
        best = np.asarray(
            along(density, ridge(density, jax.grad(density), a, b, jnp.eye(2)))
        )
        for values, dips in ((straight, True), (best, not joined)):
            depth = min(values[0], values[-1]) - values.min()
            assert (depth > 3.0) == dips


def test_draws_of_the_answer_are_corrected_where_weights_can_do_it():
    target = softcvi.DensityTarget(
        lambda t: -0.5 * jnp.sum((t["x"] - 1.0) ** 2), {"x": jnp.zeros(2)}
    )
    wide = softcvi.guides.mean_field(target)  # a standard normal, one sd off
    result = softcvi.fit(
        jax.random.key(0), target, wide, steps=1, start=None, progress=False
    )
    assert result.has_usable_weights
    corrected = result.sample(jax.random.key(1), 4000)["x"].mean(0)
    own = result.posterior.sample(jax.random.key(1), 4000)["x"].mean(0)
    # Four standard errors; the effective share of the weights is about a tenth.
    np.testing.assert_allclose(corrected, 1.0, atol=4 / np.sqrt(4 * 4000 * 0.1))
    assert np.all(np.abs(own - 1.0) > 0.8)
