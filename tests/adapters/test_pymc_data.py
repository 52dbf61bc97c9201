"""What PyMC models do with their data, and which values discrete variables have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_pymc

pm = pytest.importorskip("pymc")
# Says how PyTensor was installed; nothing here needs to be fast.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    return x, x @ np.array([1.0, -0.5]) + rng.normal(size=60)


def regression(x, y, batch_size=None):
    with pm.Model(coords={"predictor": ["a", "b"]}) as model:
        x, y = pm.Data("x", x), pm.Data("outcome", y)
        if batch_size is not None:
            x, y = pm.Minibatch(x, y, batch_size=batch_size)
        slope = pm.Normal("slope", dims="predictor", initval=np.full(2, 0.25))
        noise = pm.HalfNormal("noise")
        pm.Deterministic("variance", noise**2)
        pm.Normal("y", x @ slope, noise, observed=y, total_size=60)
    return model


def test_of_a_mini_batch_all_rows_count(rows):
    with pytest.warns(UserWarning, match=r"pm.Minibatch is set aside.* 60 rows"):
        target = from_pymc(regression(*rows, batch_size=7))
    whole = from_pymc(regression(*rows))
    np.testing.assert_allclose(target.start["slope"], 0.25)
    for seed in range(3):
        u = whole.initial_particle(jax.random.key(seed))
        ours, theirs = target.log_density(u), whole.log_density(u)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    pytest.importorskip("arviz_base")
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    tree = posterior.to_arviz(n=5, prior=True)
    assert tree["posterior"]["slope"].dims == ("chain", "draw", "predictor")
    assert "variance" in tree["posterior"]
    for group in ("log_likelihood", "posterior_predictive", "prior_predictive"):
        assert tree[group]["y"].shape == (1, 5, 60)
    np.testing.assert_allclose(tree["observed_data"]["y"], rows[1])


def test_predictions_are_those_of_the_data_that_were_read():
    with pm.Model(coords={"row": [10, 11, 12]}) as model:
        shift = pm.Data("shift", np.zeros(3), dims="row")
        mu = pm.Normal("mu", 0.0, 0.1)
        pm.Normal("y", mu + shift, 0.1, observed=np.zeros(3), dims="row")
    target = from_pymc(model)
    with model:
        pm.set_data({"shift": np.full(2, 50.0)}, coords={"row": [7, 8]})
    pytest.importorskip("arviz_base")
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    tree = posterior.to_arviz(n=20, prior=True)
    np.testing.assert_array_equal(tree["observed_data"]["row"], [10, 11, 12])
    for group in ("posterior_predictive", "prior_predictive"):
        assert tree[group]["y"].shape == (1, 20, 3)
        assert np.all(np.abs(tree[group]["y"]) < 20.0)
    # The user's model keeps the new data.
    np.testing.assert_allclose(model["shift"].get_value(), 50.0)
    assert model.coords["row"] == (7, 8)


@pytest.mark.filterwarnings("ignore:Scan return signature")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda p: pm.Bernoulli("k", p[0], shape=4), (0, 2)),
        (lambda p: pm.Categorical("k", p, shape=4), (0, 3)),
        (lambda p: pm.Binomial("k", 6, p[0]), (0, 7)),
        (lambda p: pm.BetaBinomial("k", 1 + p[0], 2.0, n=6), (0, 7)),
        (lambda p: pm.HyperGeometric("k", N=10, k=4, n=3), (0, 4)),
        (lambda p: pm.Truncated("k", pm.Poisson.dist(3 * p[0]), upper=8), (0, 9)),
        (lambda p: pm.Truncated("k", pm.Poisson.dist(p[0]), lower=2, upper=5), (2, 4)),
        (lambda p: pm.OrderedLogistic("k", p[0], np.array([-1.0, 1.0])), (0, 3)),
    ],
)
def test_probabilities_of_discrete_variables_may_depend_on_others(make, expected):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        k = make(p)
        pm.Normal("y", k.sum(), 1.0, observed=2.0)
    target = from_pymc(model)
    assert target.graphs.ranges == {"k": expected}


def test_a_range_that_depends_on_others_is_not_known():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 1, 5)
        pm.Binomial("k", n, 0.5)
        pm.DiscreteUniform("below", 0, n)
        pm.Poisson("counts", 2.0)
    assert from_pymc(model).num_values() == {"n": 5}


def test_missing_values_of_a_discrete_outcome_have_its_range():
    data = np.ma.masked_equal([0, 1, 1, -1, 1], -1)
    with pm.Model() as model:
        p = pm.Beta("p", 1.0, 1.0)
        with pytest.warns(Warning, match="automatically imputed"):
            pm.Bernoulli("y", p, observed=data)
    assert from_pymc(model).num_values() == {"y_unobserved": 2}


@pytest.mark.slow
def test_a_mixture_with_its_assignments_is_fitted():
    y = np.array([-3.1, -2.8, -3.0, 2.9, 3.2, 3.1, 2.7])
    with pm.Model() as model:
        weight = pm.Beta("weight", 2.0, 2.0)
        side = pm.Bernoulli("side", weight, shape=7)
        pm.Normal("y", 6.0 * side - 3.0, 0.5, observed=y)
    target = from_pymc(model)
    result = softcvi.fit(jax.random.key(0), target, steps=3000, progress=False)
    draws = result.sample(jax.random.key(1), 4000)
    np.testing.assert_allclose(jnp.mean(draws["side"], 0), y > 0, atol=0.01)
    # Given the sides, the weight is Beta(6, 5).
    np.testing.assert_allclose(jnp.mean(draws["weight"]), 6 / 11, atol=0.02)
    np.testing.assert_allclose(jnp.std(draws["weight"]), 0.1438, rtol=0.1)


def test_variables_that_cannot_be_drawn_cost_a_group_and_not_the_tree():
    pytest.importorskip("arviz_base")

    def log_prob(value, mu):
        return -((value - mu) ** 2)

    with pm.Model() as model:
        mu = pm.Flat("mu")
        pm.CustomDist("y", mu, logp=log_prob, observed=np.ones(3))
    target = from_pymc(model)
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    with (
        pytest.warns(UserWarning, match="'posterior_predictive' is left out"),
        pytest.warns(UserWarning, match="'prior' is left out"),
    ):
        tree = posterior.to_arviz(n=5, prior=True)
    expected = {"posterior", "sample_stats", "log_likelihood", "observed_data"}
    assert set(tree.children) == expected


def test_what_jax_cannot_compute_is_said_with_the_remedy():
    import pytensor.tensor as pt
    from pytensor.graph import Apply, Op

    class BlackBox(Op):
        def make_node(self, x):
            return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = np.asarray(np.sin(inputs[0]))

    with pm.Model() as model:
        pm.Normal("y", BlackBox()(pm.Normal("mu")), 1.0, observed=0.5)
    with pytest.raises(NotImplementedError, match=r"BlackBox.*from_callable"):
        from_pymc(model)
    # The remedy as it is written there.
    target = softcvi.adapters.from_callable(model.compile_logp(), model.initial_point())
    value = jax.jit(target.log_density)({"mu": jnp.asarray(0.3)})
    exact = -0.5 * 0.3**2 - 0.5 * (0.5 - np.sin(0.3)) ** 2 - np.log(2 * np.pi)
    np.testing.assert_allclose(value, exact, rtol=1e-4)


def test_a_simulator_is_refused_by_name():
    def simulate(rng, a, size=None):
        return rng.normal(a, 1.0, size=5)

    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Simulator("wait", simulate, a, observed=np.ones(5))
    with pytest.raises(NotImplementedError, match=r"'wait' is a pm\.Simulator.*smc"):
        from_pymc(model)
