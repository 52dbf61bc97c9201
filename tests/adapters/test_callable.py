import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_callable

COUNTS = np.array([3, 5, 4, 6, 2, 4, 5, 3])


def rounded(x):
    """Gamma-Poisson with a rate that is rounded, and a branch for the boundary."""
    rate = round(float(np.exp(x["log_rate"])), 1)
    if rate <= 0:
        return -np.inf
    return float(2 * np.log(rate) - rate + COUNTS.sum() * np.log(rate) - 8 * rate)


def exact_moments():
    """Of the log rate: by quadrature on a grid fine enough for the steps."""
    grid = np.linspace(0, 3, 20_001)
    log_p = np.array([rounded({"log_rate": v}) for v in grid])
    weights = np.exp(log_p - log_p.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


@pytest.fixture(scope="module")
def fitted():
    target = from_callable(rounded, like={"log_rate": jnp.zeros(())})
    return softcvi.fit(
        jax.random.key(0), target, steps=1500, learning_rate=0.02, progress=False
    )


def test_numpy_code_with_round_and_if_reaches_the_right_answer(fitted):
    mean, sd = exact_moments()
    draws = fitted.posterior.sample(jax.random.key(1), 10_000)["log_rate"]
    np.testing.assert_allclose(draws.mean(), mean, atol=0.1 * sd)
    np.testing.assert_allclose(draws.std(), sd, rtol=0.1)


def test_the_elbo_is_refused_on_the_same_model():
    target = from_callable(rounded, like={"log_rate": jnp.zeros(())})
    with pytest.raises(ValueError, match="has no gradient"):
        softcvi.fit(jax.random.key(0), target, objective=softcvi.ELBO(), steps=1)


def test_trace_elbo_raises_on_the_same_model():
    numpyro = pytest.importorskip("numpyro")
    import optax

    def model():
        x = numpyro.sample("log_rate", numpyro.distributions.Normal(0, 100))
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        value = jax.pure_callback(
            lambda v: np.float32(rounded({"log_rate": v})),
            shape,
            x,
            vmap_method="sequential",
        )
        numpyro.factor("likelihood", value)

    def guide():
        loc = numpyro.param("loc", 1.0)
        numpyro.sample("log_rate", numpyro.distributions.Normal(loc, 0.1))

    loss = numpyro.infer.Trace_ELBO()
    svi = numpyro.infer.SVI(model, guide, optax.adam(0.1), loss)
    with pytest.raises(ValueError, match=r"[Pp]ure callbacks do not support JVP"):
        svi.run(jax.random.key(0), 1, progress_bar=False)
    # The same model and guide learn with the loss that needs no gradient.
    svi = numpyro.infer.SVI(
        model, guide, optax.adam(0.01), softcvi.adapters.SoftCVILoss()
    )
    params = svi.run(jax.random.key(0), 500, progress_bar=False).params
    mean, sd = exact_moments()
    np.testing.assert_allclose(params["loc"], mean, atol=0.6 * sd)


def test_a_vectorized_function_gets_all_particles_at_once():
    sizes = []

    def fn(x):
        sizes.append(len(x["a"]))
        return -0.5 * np.sum(x["a"] ** 2, axis=1)

    target = from_callable(fn, like={"a": jnp.zeros(2)}, vectorized=True)
    values = jax.vmap(target.log_density)({"a": jnp.ones((6, 2))})
    np.testing.assert_allclose(values, -1.0)
    assert sizes == [6]


def test_a_callable_that_raises_in_the_middle_keeps_what_was_fitted():
    calls = []

    def fragile(x):
        calls.append(1)
        if len(calls) > 40_000:
            raise ZeroDivisionError("the simulator ran out of licences")
        return -0.5 * float(np.sum((x["a"] - 2.0) ** 2))

    target = from_callable(fragile, like={"a": jnp.zeros(2)})
    with pytest.raises(softcvi.FitError, match="ran out of licences") as caught:
        softcvi.fit(
            jax.random.key(0), target, steps=50_000, learning_rate=0.02, progress=False
        )
    result = caught.value.result
    assert result.status == "failed"
    assert result.steps > 0
    draws = result.posterior.sample(jax.random.key(0), 1000)["a"]
    assert np.all(np.isfinite(draws))


def test_a_wrong_shape_is_explained():
    target = from_callable(lambda x: x["a"], like={"a": jnp.zeros(2)})
    with pytest.raises(Exception, match="must return one number per particle"):
        jax.block_until_ready(target.log_density({"a": jnp.zeros(2)}))


def unreliable(x):
    """A normal, by a simulator that now and then fails or hangs."""
    value = float(x["a"])
    if 0.05 < value - np.floor(value) < 0.1:
        raise FloatingPointError("the solver diverged")
    if 2.5008 < value < 2.5012:
        time.sleep(1.5)
    return -0.5 * (value - 2.0) ** 2


def test_particles_are_evaluated_side_by_side_and_failures_are_no_density():
    with ThreadPoolExecutor(8) as pool:
        target = from_callable(
            unreliable, like={"a": jnp.zeros(())}, executor=pool, timeout=1.0
        )
        values = jax.vmap(target.log_density)({"a": jnp.array([2.0, 2.07, 2.501, 3.0])})
        np.testing.assert_allclose(values, [0.0, -np.inf, -np.inf, -0.5], atol=1e-6)
        assert target.failures == {"FloatingPointError": 1, "time-out": 1}
        result = softcvi.fit(
            jax.random.key(0),
            target,
            softcvi.guides.mean_field(target),
            steps=600,
            learning_rate=0.03,
            start=None,
            progress=False,
        )
    draws = result.posterior.sample(jax.random.key(1), 4000)["a"]
    np.testing.assert_allclose(draws.mean(), 2.0, atol=0.25)
    with pytest.raises(ValueError, match="timeout"):
        from_callable(unreliable, like={"a": jnp.zeros(())}, timeout=1.0)
