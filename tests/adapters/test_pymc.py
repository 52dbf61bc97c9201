import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.adapters import from_pymc
from softcvi.targets import Informed, SpaceOfModel
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts

pm = pytest.importorskip("pymc")
# Says how PyTensor was installed; nothing here needs to be fast.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


@pytest.fixture(scope="module")
def model():
    names = ["Choate", "Deerfield", "Andover", "Exeter"]
    names += ["Hotchkiss", "Lawrenceville", "St. Paul's", "Mt. Hermon"]
    with pm.Model(coords={"school": names}) as model:
        effects = pm.Data("effects", EFFECTS, dims="school")
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        base = pm.Normal("theta_base", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * base, dims="school")
        pm.Normal("obs", theta, ERRORS, observed=effects, dims="school")
    return model


@pytest.fixture(scope="module")
def target(model):
    return from_pymc(model)


def test_the_switches_of_jax_stay_where_they_were(target):
    assert not jax.config.jax_enable_x64
    assert "device_count=100" not in os.environ.get("XLA_FLAGS", "")
    assert jnp.zeros(()).dtype == jnp.float32


def test_log_density_is_that_of_the_numpyro_model(target, schools_target):
    keys = jax.random.split(jax.random.key(0), 16)
    points = jax.vmap(schools_target.initial_particle)(keys)
    ours = jax.jit(jax.vmap(target.log_density))(points)
    theirs = jax.jit(jax.vmap(schools_target.log_density))(points)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def test_names_values_data_and_dims(target):
    u = {"mu": 1.0, "tau": np.log(2.0), "theta_base": jnp.ones(8)}
    x, log_det = target.space.to_model_and_log_det(u)
    np.testing.assert_allclose(x["tau"], 2.0, rtol=1e-5)
    np.testing.assert_allclose(log_det, np.log(2.0), rtol=1e-5)
    again, inverse = target.space.from_model_and_log_det(x)
    np.testing.assert_allclose(again["tau"], np.log(2.0), rtol=1e-5)
    np.testing.assert_allclose(log_det + inverse, 0.0, atol=1e-6)
    np.testing.assert_allclose(target.describe(x)["theta"], 3.0, rtol=1e-5)
    np.testing.assert_allclose(target.observed_data()["obs"], EFFECTS)
    assert target.dims()["theta"] == ["school"]


@pytest.mark.slow
def test_eight_schools_with_the_default_guide(target):
    result = softcvi.fit(jax.random.key(0), target, steps=4000, progress=False)
    assert_like_nuts(result.posterior.resample(jax.random.key(1), 20_000))
    pytest.importorskip("arviz_base")
    tree = result.posterior.to_arviz(n=100)
    assert tree["posterior"]["theta"].sel(school="Exeter").shape == (1, 100)
    assert tree["log_likelihood"]["obs"].shape == (1, 100, 8)


def test_a_data_container_is_read_at_the_call():
    with pm.Model() as small:
        data = pm.Data("data", np.zeros(3))
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=data)
    before = from_pymc(small)
    with small:
        pm.set_data({"data": np.full(3, 2.0)})
    after = from_pymc(small)
    zero = {"mu": jnp.zeros(())}
    difference = before.log_density(zero) - after.log_density(zero)
    np.testing.assert_allclose(difference, 3 * 2.0, rtol=1e-5)


def test_another_object_is_refused():
    with pytest.raises(TypeError, match="expected a pymc"):
        from_pymc(lambda: None)


@pytest.fixture(scope="module")
def groups():
    """Non-centred by the adapter, with data containers and constants."""
    rng = np.random.default_rng(0)
    with pm.Model(coords={"group": list("abcd")}) as groups:
        x = pm.Data("x", np.ones(4), dims="group")
        mu = pm.Normal("mu")
        tau = pm.HalfNormal("tau")
        theta = pm.Normal("theta", mu * x, tau, dims="group")
        factor = tau * np.array([[1.0, 0.0], [0.5, 2.0]])
        pm.MvNormal("pairs", mu * np.ones(2), chol=factor, shape=(3, 2))
        scale = pm.HalfCauchy("scale", tau)
        pm.Deterministic("number", pm.math.sum(x))
        pm.Normal("y", theta, scale, observed=rng.normal(size=4), dims="group")
    return groups


@pytest.fixture(scope="module")
def grouped(groups):
    return from_pymc(groups)


def test_hierarchical_variables_are_fitted_in_non_centred_coordinates(grouped):
    assert set(grouped.space.decentred) == {"theta", "pairs", "scale"}
    written = grouped.in_space(SpaceOfModel())

    @jax.jit
    def compared(key):
        u = grouped.initial_particle(key)
        x, log_det = grouped.space.to_model_and_log_det(u)
        back, inverse = grouped.space.from_model_and_log_det(x)
        other, other_det = written.space.from_model_and_log_det(x)
        ours = grouped.log_density(u) - log_det
        theirs = written.log_density(other) + other_det
        return u, back, log_det + inverse, ours, theirs

    u, back, total, ours, theirs = compared(jax.random.key(0))
    for name in u:
        np.testing.assert_allclose(back[name], u[name], atol=2e-3)
    np.testing.assert_allclose(total, 0.0, atol=1e-4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda location, scale: pm.Normal("x", location, scale, shape=4),
        lambda location, scale: pm.Laplace("x", location, scale, shape=4),
        lambda location, scale: pm.Cauchy("x", location, scale, shape=4),
        lambda location, scale: pm.StudentT(
            "x", 2 + scale, mu=location, sigma=scale, shape=4
        ),
        lambda location, scale: pm.LogNormal("x", location, scale, shape=4),
        lambda location, scale: pm.HalfNormal("x", scale, shape=4),
        lambda location, scale: pm.HalfCauchy("x", scale, shape=4),
    ],
)
def test_the_density_of_every_standardised_family_is_that_of_the_model(make):
    with pm.Model() as model:
        make(pm.Normal("location"), pm.HalfNormal("scale"))
    target = from_pymc(model)
    assert target.space.decentred == ("x",)
    data = Informed(np.full(4, 0.7), np.full(4, 2.0))
    written = target.in_space(SpaceOfModel())
    for space in (target.space, SpaceOfModel(("x",), {"x": data})):
        placed = target.in_space(space)
        u = placed.initial_particle(jax.random.key(0))
        x, log_det = placed.space.to_model_and_log_det(u)
        other, other_det = written.space.from_model_and_log_det(x)
        ours, theirs = placed.log_density(u), written.log_density(other)
        np.testing.assert_allclose(ours - log_det, theirs + other_det, rtol=1e-4)


def test_rounding_makes_no_mode_where_a_scale_is_tiny():
    with pm.Model() as model:
        theta = pm.Normal(
            "theta", pm.Normal("mu", 0, 10), pm.HalfNormal("tau"), shape=4
        )
        pm.Normal("y", theta, 1.0, observed=np.full(4, 5.0))
    target = from_pymc(model)

    def of_twins(z):
        u = {"mu": jnp.asarray(5.0), "tau": jnp.asarray(-18.0), "theta": z}
        return target.log_density(u)

    # So narrow a prior leaves the data nothing to say: the twins are standard normal.
    fall = of_twins(jnp.zeros(4)) - of_twins(jnp.full(4, 3.0))
    np.testing.assert_allclose(fall, 4 * 3.0**2 / 2, rtol=1e-3)


def test_coordinates_follow_what_the_data_know(grouped):
    spread = {name: np.ones(leaf.shape) for name, leaf in grouped.like.items()}
    mean = {name: 0.5 * ones for name, ones in spread.items()}
    assert grouped.recentred(mean, spread) is None
    narrow = {"theta": np.full(4, 0.1), "pairs": np.full((3, 2), 0.1)}
    again = grouped.recentred(mean, {**spread, **narrow})
    assert set(again.space.decentred) == {"theta", "scale"}
    assert set(again.space.informed) == {"theta"}
    zero = {**mean, "theta": np.zeros(4)}
    found = again.space.to_model(zero)["theta"]
    np.testing.assert_allclose(found, grouped.space.to_model(mean)["theta"], rtol=1e-4)
    back, _ = again.space.from_model_and_log_det(again.space.to_model(zero))
    np.testing.assert_allclose(back["theta"], 0.0, atol=1e-3)


def test_predictions_belong_to_the_draws_that_are_given(grouped):
    guide = softcvi.guides.mean_field(grouped)
    posterior = softcvi.Posterior(guide, grouped)
    draws = posterior.sample(jax.random.key(0), 200)
    # Far from the prior: PyMC must not draw the effects themselves anew.
    draws = {**draws, "theta": np.full((200, 4), 50.0), "scale": np.full(200, 0.1)}
    replicates = softcvi.adapters.posterior_predictive(
        jax.random.key(1), posterior, draws=draws
    )
    assert replicates["y"].shape == (200, 4)
    np.testing.assert_allclose(replicates["y"].mean(0), 50.0, atol=0.1)


def test_every_group_of_the_tree_is_there_with_names(grouped):
    pytest.importorskip("arviz_base")
    posterior = softcvi.Posterior(softcvi.guides.mean_field(grouped), grouped)
    tree = posterior.to_arviz(n=5, prior=True)
    groups = {"posterior", "posterior_predictive", "prior", "prior_predictive"}
    groups |= {"log_likelihood", "sample_stats", "observed_data", "constant_data"}
    assert set(tree.children) == groups
    for group in ("posterior", "prior"):
        assert tree[group]["theta"].dims == ("chain", "draw", "group")
        assert "number" not in tree[group]
    for group in ("posterior_predictive", "prior_predictive", "log_likelihood"):
        assert tree[group]["y"].dims == ("chain", "draw", "group")
    np.testing.assert_allclose(tree["constant_data"]["x"], 1.0)
    np.testing.assert_allclose(tree["constant_data"]["number"], 4.0)


def test_imputed_values_are_latent():
    with pm.Model() as partly:
        mu = pm.Normal("mu")
        pm.Potential("penalty", -0.1 * mu**2)
        data = np.ma.masked_invalid([1.0, np.nan, 2.0])
        with pytest.warns(Warning, match="automatically imputed"):
            pm.Normal("y", mu, 1.0, observed=data)
    target = from_pymc(partly)
    assert target.like["y_unobserved"].shape == (1,)
    x = {"mu": jnp.zeros(()), "y_unobserved": jnp.full(1, 7.0)}
    np.testing.assert_allclose(target.describe(x)["y"], [1.0, 7.0, 2.0])
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    draws = {name: np.asarray(value)[None] for name, value in x.items()}
    replicates = softcvi.adapters.posterior_predictive(
        jax.random.key(1), posterior, draws=draws
    )
    assert replicates["y_observed"].shape == (1, 2)


def test_discrete_variables_are_counted_from_their_smallest_value():
    with pm.Model() as counts:
        pm.Bernoulli("b", 0.3)
        pm.Categorical("k", np.ones(3) / 3, shape=2)
        d = pm.DiscreteUniform("d", 2, 5)
        pm.Normal("y", d, 1.0, observed=4.0)
    target = from_pymc(counts)
    assert target.num_values() == {"b": 2, "k": 3, "d": 4}
    zero = {"b": 0, "k": jnp.zeros(2, jnp.int32)}
    assert target.space.to_model({**zero, "d": 1})["d"] == 3
    values = [target.log_density({**zero, "d": jnp.asarray(i)}) for i in range(4)]
    assert int(np.argmax(values)) == 2


@pytest.mark.slow
def test_a_fit_in_the_manner_of_pymc(model):
    from softcvi.adapters import pymc

    with model:
        approximation = pymc.fit(2000, random_seed=0, progressbar=False)
    assert np.all(np.isfinite(approximation.hist))
    trace = approximation.sample(2000)
    np.testing.assert_allclose(trace.posterior["mu"].mean(), 4.38, atol=0.5)
    with model:
        again = pm.sample_posterior_predictive(trace, progressbar=False, random_seed=0)
    np.testing.assert_allclose(
        again.posterior_predictive["obs"].mean(("chain", "draw")),
        trace.posterior["theta"].mean(("chain", "draw")),
        atol=2.0,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_bambi_models_are_taken_and_predict():
    bambi = pytest.importorskip("bambi")
    pandas = pytest.importorskip("pandas")
    from softcvi.adapters import pymc

    rng = np.random.default_rng(0)
    x, group = rng.normal(size=60), np.repeat(list("abcd"), 15)
    y = 1.0 + 2.0 * x + 0.3 * rng.normal(size=60)
    data = pandas.DataFrame({"y": y, "x": x, "group": group})
    model = bambi.Model("y ~ x + (1|group)", data)
    approximation = pymc.fit(2000, model=model, random_seed=0, progressbar=False)
    trace = approximation.sample(500)
    np.testing.assert_allclose(trace.posterior["x"].mean(), 2.0, atol=0.15)
    model.predict(trace, kind="response")
    replicates = trace.posterior_predictive["y"].mean(("chain", "draw"))
    np.testing.assert_allclose(np.corrcoef(replicates, y)[0, 1], 1.0, atol=0.05)
