"""The tasks' densities, spaces and guides."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import paramax
import pytest
from numpyro.infer.util import log_density
from softcvi_experiments import references, tasks
from softcvi_experiments.references import BuiltinReferences

SOURCE = BuiltinReferences()


@pytest.mark.parametrize("name", tasks.PAPER_TASKS)
def test_guide_and_target_fit_together(name):
    task = tasks.get_task(name)
    data = task.data(jr.key(0), [0, 1], SOURCE)
    target = task.target(jax.tree.map(lambda leaf: leaf[0], data.observed))
    guide = paramax.unwrap(task.guide(jr.key(1)))
    assert target.structure == guide.structure

    @jax.jit
    def scores(keys):
        particles = jax.vmap(guide.sample)(keys)
        log_p = jax.vmap(target.log_density)(particles)
        return log_p, jax.vmap(guide.log_prob)(particles)

    for values in scores(jr.split(jr.key(2), 50)):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["eight_schools", "garch"])
def test_space_is_a_bijection_with_its_log_det(name):
    task = tasks.get_task(name)
    data = task.data(jr.key(0), [0], SOURCE)
    target = task.target(jax.tree.map(lambda leaf: leaf[0], data.observed))
    space, structure = target.space, target.structure
    guide = paramax.unwrap(task.guide(jr.key(1)))
    u = jax.jit(lambda key: guide.sample(key))(jr.key(2))
    x, log_det = space.to_model_and_log_det(u)
    back, log_det_back = space.from_model_and_log_det(x)
    for site in u:
        np.testing.assert_allclose(back[site], u[site], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_det_back, -log_det, rtol=1e-4)

    def flat(vector):
        moved = space.to_model(structure.unravel(vector))
        return structure.ravel({site: moved[site] for site in u})

    jacobian = jax.jit(jax.jacobian(flat))(structure.ravel(u))
    _, exact = np.linalg.slogdet(np.asarray(jacobian, float))
    np.testing.assert_allclose(log_det, exact, rtol=1e-3)


def reference_differences(log_prob, observed, draws, numpyro_log_prob):
    """Ours minus NumPyro's log density, which must not depend on the draw."""
    few = {site: jnp.asarray(value[:20]) for site, value in draws.items()}
    both = jax.jit(jax.vmap(lambda x: log_prob(x, observed) - numpyro_log_prob(x)))
    return np.asarray(both(few))


def test_eight_schools_density_is_numpyros():
    reference = SOURCE.load("eight_schools")
    observed = {k: jnp.asarray(v, float) for k, v in reference.observed.items()}

    def numpyro_log_prob(x):
        std = (x["theta"] - x["mu"]) / x["tau"]
        values = {"mu": x["mu"], "tau": x["tau"], "theta_std": std}
        value, _ = log_density(references.eight_schools_model, (), observed, values)
        return value - 8 * jnp.log(x["tau"])

    differences = reference_differences(
        tasks.eight_schools_log_prob, observed, reference.draws, numpyro_log_prob
    )
    np.testing.assert_allclose(differences, 0, atol=1e-3)


@pytest.mark.parametrize("variant", ["paper", "posteriordb"])
def test_garch_density_is_numpyros(variant):
    reference = SOURCE.load(f"garch_{variant}")
    observed = {"y": jnp.asarray(reference.observed["y"], float)}
    log_prob = {
        "paper": tasks.garch_log_prob,
        "posteriordb": tasks.posteriordb_garch_log_prob,
    }[variant]

    def numpyro_log_prob(x):
        std = x["beta1"] / (1 - x["alpha1"])
        values = {k: x[k] for k in ("mu", "alpha0", "alpha1")} | {"beta1_std": std}
        value, _ = log_density(
            references.garch_model, (observed["y"], variant), {}, values
        )
        return value - jnp.log1p(-x["alpha1"])

    differences = reference_differences(
        log_prob, observed, reference.draws, numpyro_log_prob
    )
    np.testing.assert_allclose(differences, 0, atol=2e-3)


def test_slcp_density_and_sampler_agree():
    """Weights of draws from the sampler must not vary under the task's density."""
    reference = SOURCE.load("slcp_02")
    observed = {"x": jnp.asarray(reference.observed["x"], float)}
    theta = jnp.asarray(reference.draws["theta"][:500])
    likelihood = jax.jit(
        jax.vmap(lambda t: tasks.slcp_log_prob({"theta": t}, observed))
    )
    # Another way to the same number: NumPy's general normal density.
    scale = np.square(theta[:, 2:4], dtype=float)
    off = np.tanh(np.asarray(theta[:, 4], float)) * scale[:, 0] * scale[:, 1]
    covariance = np.stack([scale[:, 0] ** 2, off, off, scale[:, 1] ** 2], axis=1)
    covariance = covariance.reshape(-1, 2, 2)
    centred = np.asarray(observed["x"])[None] - np.asarray(theta[:, None, :2], float)
    square = np.einsum("nki,nij,nkj->n", centred, np.linalg.inv(covariance), centred)
    log_det = np.log(np.linalg.det(covariance))
    expected = -0.5 * square - 2 * log_det - 4 * np.log(2 * np.pi) - 5 * np.log(6)
    np.testing.assert_allclose(likelihood(theta), expected, rtol=1e-3, atol=1e-2)
    outside = {"theta": jnp.array([0.0, 0.0, 1.0, 1.0, 3.1])}
    assert tasks.slcp_log_prob(outside, observed) == -jnp.inf


def test_linear_regression_limit_is_reached_by_the_exact_marginals():
    task = tasks.LinearRegression()
    data = task.data(jr.key(3), [0], SOURCE)
    draws = np.column_stack([data.draws["beta"][0], data.draws["mu"][0]])
    mean, sd = draws.mean(0), draws.std(0)
    score = -0.5 * ((draws - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    total = score.sum(axis=1)
    error = total.std() / np.sqrt(len(total))
    # Fitting 102 numbers to 10,000 draws gains about 102 / 2 / 10,000 nats.
    assert abs(total.mean() - 0.0051 - data.limit[0]) < 4 * error


def test_runs_have_their_own_data_whatever_their_batch():
    task = tasks.LinearRegression()
    both = task.data(jr.key(0), [4, 9], SOURCE)
    alone = task.data(jr.key(0), [9], SOURCE)
    # A product of a batch may be summed in another order.
    np.testing.assert_allclose(
        both.observed["y"][1], alone.observed["y"][0], atol=1e-4, rtol=1e-5
    )
    assert not np.allclose(both.observed["y"][0], both.observed["y"][1])


def test_unknown_task_lists_known():
    with pytest.raises(ValueError, match="eight_schools, linear_regression, slcp"):
        tasks.get_task("two_moons")
