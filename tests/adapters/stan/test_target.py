"""What JAX and the library see of a Stan program, without compiling one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters.stan import StanTarget
from tests.adapters.stan.programs import Gamma

DATA = {"y": np.array([1.0, 2.0])}


@pytest.fixture
def target():
    return StanTarget(Gamma(), DATA)


@pytest.fixture
def doubles():
    with jax.enable_x64(True):
        yield


@pytest.mark.usefixtures("doubles")
def test_gradients_and_second_derivatives(target):
    def exact(x):
        return 3 * x[0] - 2 * jnp.exp(x[0]) - 0.5 * x[1] ** 2 / 9

    def ours(x):
        return target.log_density({"unconstrained": x})

    x = jnp.array([0.3, -2.0])
    np.testing.assert_allclose(ours(x), exact(x))
    np.testing.assert_allclose(jax.grad(ours)(x), jax.grad(exact)(x), rtol=1e-12)
    np.testing.assert_allclose(
        jax.hessian(ours)(x), jax.hessian(exact)(x), rtol=1e-4, atol=1e-8
    )
    batch = jnp.stack([x, 2 * x, -x])
    np.testing.assert_allclose(
        jax.jit(jax.vmap(jax.hessian(ours)))(batch),
        jax.vmap(jax.hessian(exact))(batch),
        rtol=1e-4,
        atol=1e-8,
    )


def test_double_precision_survives_in_a_session_in_single(target):
    # JAX casts arguments and results of callbacks on threads it calls from.
    with jax.enable_x64(False):
        single = target.log_density({"unconstrained": jnp.array([1 / 3, 0.0])})
        assert single.dtype == jnp.float32
        with jax.enable_x64(True):
            x = jnp.array([1 / 3, 0.0])
            double = jax.jit(lambda x: target.log_density({"unconstrained": x}))(x)
            assert double.dtype == jnp.float64
    np.testing.assert_allclose(double, 1 - 2 * np.exp(1 / 3), rtol=1e-14)


def test_a_batch_is_one_call(target):
    program, calls = target.program, []
    original = program.log_density_and_gradient
    program.log_density_and_gradient = lambda rows: (
        calls.append(len(rows)) or original(rows)
    )
    particles = {"unconstrained": jnp.ones((7, 2))}
    jax.jit(jax.vmap(jax.grad(target.log_density)))(particles)
    assert calls == [7]


def test_rejected_points_have_no_density_and_no_gradient(target):
    particle = {"unconstrained": jnp.array([6.0, 0.0])}
    assert target.log_density(particle) == -jnp.inf
    gradient = jax.grad(target.log_density)(particle)["unconstrained"]
    np.testing.assert_array_equal(gradient, 0.0)


def test_densities_beyond_single_precision_are_infinite(target):
    particle = {"unconstrained": jnp.array([-1e30, 1e25])}
    assert target.log_density(particle) == -jnp.inf


def test_fit_finds_the_posterior_with_its_gradient(target):
    result = softcvi.fit(jax.random.key(0), target, steps=2000, progress=False)
    draws = result.sample(jax.random.key(1), 8000)
    assert set(draws) == {"rate", "slope", "twice"}
    # The rate is gamma with shape 3 and rate 2.
    np.testing.assert_allclose(draws["rate"].mean(), 1.5, atol=0.05)
    np.testing.assert_allclose(draws["rate"].std(), np.sqrt(3) / 2, rtol=0.06)
    np.testing.assert_allclose(draws["slope"].std(), 3.0, rtol=0.05)
    assert result.verdict.trusted


def test_named_points_find_their_way_back(target):
    point = {"rate": jnp.array(2.0), "slope": jnp.array(-1.0)}
    u, log_det = target.space.from_model_and_log_det(point)
    np.testing.assert_allclose(u["unconstrained"], [np.log(2.0), -1.0])
    assert log_det == 0
    with pytest.raises(ValueError, match="also has the parameters slope"):
        target.space.from_model_and_log_det({"rate": jnp.array(2.0)})


def test_groups_for_arviz(target):
    pytest.importorskip("arviz_base")
    guide = softcvi.guides.mean_field(target)
    tree = softcvi.Posterior(guide, target).to_arviz(n=50)
    assert set(tree["posterior"].data_vars) == {"rate", "slope", "twice"}
    np.testing.assert_allclose(
        tree["log_likelihood"]["log_lik"], -tree["posterior"]["rate"], rtol=1e-6
    )
    replicates = tree["posterior_predictive"]["y"]
    assert replicates.shape == (1, 50, 2)
    assert np.unique(replicates).size == 100
    given = softcvi.Posterior(guide, target).sample(jax.random.key(0), 7)
    tree_of_given = softcvi.Posterior(guide, target).to_arviz(draws=given)
    np.testing.assert_array_equal(tree_of_given["posterior"]["rate"][0], given["rate"])
    np.testing.assert_array_equal(tree["observed_data"]["y"], DATA["y"])


def test_a_saved_posterior_asks_for_its_program(target, tmp_path):
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    posterior.save(tmp_path / "fit.softcvi")
    with pytest.raises(ValueError, match="target: "):
        softcvi.load(tmp_path / "fit.softcvi")
    again = softcvi.load(tmp_path / "fit.softcvi", target=target)
    assert set(again.sample(jax.random.key(0), 5)) == {"rate", "slope", "twice"}
