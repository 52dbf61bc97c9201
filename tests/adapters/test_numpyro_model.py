from unittest.mock import Mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi

numpyro = pytest.importorskip("numpyro")
import numpyro.distributions as dist  # noqa: E402
from numpyro.infer.reparam import LocScaleReparam  # noqa: E402
from numpyro.infer.util import potential_energy  # noqa: E402

from softcvi.adapters import from_numpyro, posterior_predictive  # noqa: E402
from softcvi.adapters.numpyro import _model  # noqa: E402
from tests.adapters.conftest import EFFECTS, ERRORS, assert_like_nuts  # noqa: E402


def many_supports(y):
    numpyro.sample("real", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("positive", dist.Gamma(2.0, 3.0))
    numpyro.sample("unit", dist.Beta(2.0, 3.0))
    numpyro.sample("interval", dist.Uniform(-1.0, 4.0))
    numpyro.sample("simplex", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("cholesky", dist.LKJCholesky(3, 1.0))
    numpyro.sample("above", dist.Pareto(2.0, 3.0))
    ordered = dist.constraints.ordered_vector
    numpyro.sample("ordered", dist.ImproperUniform(ordered, (), (3,)))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", 4), numpyro.handlers.scale(scale=0.5):
        loc = numpyro.sample("loc", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(loc, scale), obs=y)
    numpyro.factor("penalty", -0.1 * scale)
    numpyro.deterministic("twice", 2 * scale)


@pytest.fixture(scope="module")
def supports():
    return from_numpyro(many_supports, np.array([0.1, -0.4, 1.0, 2.0]))


@pytest.fixture(scope="module")
def evaluated(supports):
    """Everything at 1000 starting points, by one compiled program."""
    args, kwargs = supports.call.arguments()
    model = numpyro.handlers.seed(many_supports, 0)

    def one(key):
        u = supports.initial_particle(key)
        x, forward = supports.space.to_model_and_log_det(u)
        again, backward = supports.space.from_model_and_log_det(x)
        theirs = -potential_energy(model, args, kwargs, u)
        return u, x, again, forward + backward, supports.log_density(u), theirs

    keys = jax.random.split(jax.random.key(0), 1000)
    return jax.device_get(jax.jit(jax.vmap(one))(keys))


def test_log_density_is_numpyros_on_every_support(evaluated):
    *_, ours, theirs = evaluated
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-2)
    assert np.all(np.isfinite(ours))


def test_the_space_goes_there_and_back(evaluated):
    u, x, again, total, *_ = evaluated
    for name in u:
        # Deep in a tail single precision cannot tell neighbours apart.
        inner = np.abs(u[name]) < 5
        np.testing.assert_allclose(
            u[name][inner], again[name][inner], atol=0.02, err_msg=name
        )
    assert np.median(np.abs(total)) < 1e-3
    np.testing.assert_allclose(x["simplex"].sum(-1), 1.0, atol=1e-5)


def test_starting_points_are_prior_draws(evaluated):
    u, x, *_ = evaluated
    np.testing.assert_allclose(x["interval"].mean(), 1.5, atol=0.2)
    np.testing.assert_allclose(x["simplex"].mean(0), 1 / 3, atol=0.05)
    assert all(np.all(np.isfinite(v)) for v in u.values())


def test_a_saved_posterior_maps_every_support_without_its_model(supports, tmp_path):
    posterior = softcvi.Posterior(softcvi.guides.mean_field(supports), supports)
    posterior.save(tmp_path / "fit.softcvi")
    loaded = softcvi.load(tmp_path / "fit.softcvi")
    draws = loaded.sample(jax.random.key(0), 5)
    expected = posterior.sample(jax.random.key(0), 5)
    assert set(expected) - set(draws) == {"twice"}
    for name, values in draws.items():
        np.testing.assert_array_equal(values, expected[name])


def test_other_data_need_no_new_trace():
    # Not a list: a model that reads one which has changed is traced again.
    run = Mock()

    def model(y):
        run()
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)

    first, second = (from_numpyro(model, np.full(3, v)) for v in (0.0, 2.0))
    value = eqx.filter_jit(lambda t: t.log_density({"mu": jnp.zeros(())}))
    before, count = value(first), run.call_count
    after = value(second)
    assert run.call_count == count
    np.testing.assert_allclose(before - after, 3 * 2.0**2 / 2, rtol=1e-5)


def test_a_model_may_look_at_the_values_of_its_data():
    def model(group, y):
        with numpyro.plate("group", int(np.max(group)) + 1):
            a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(a[group], 1), obs=y)

    target = from_numpyro(model, np.array([0, 1, 1]), np.zeros(3))
    assert target.like["a"].shape == (2,)
    assert np.isfinite(target.log_density({"a": jnp.zeros(2)}))


def test_a_support_that_depends_on_another_site():
    def model():
        top = numpyro.sample("top", dist.Gamma(3.0, 1.0))
        numpyro.sample("x", dist.Uniform(0.0, top))

    target = from_numpyro(model)
    u = {"top": jnp.asarray(0.3), "x": jnp.asarray(-0.7)}
    theirs = -potential_energy(numpyro.handlers.seed(model, 0), (), {}, u)
    np.testing.assert_allclose(target.log_density(u), theirs, rtol=1e-5)
    x, log_det = target.space.to_model_and_log_det(u)
    again, inverse = target.space.from_model_and_log_det(x)
    np.testing.assert_allclose(again["x"], u["x"], atol=1e-5)
    np.testing.assert_allclose(log_det + inverse, 0.0, atol=1e-5)
    assert x["x"] < x["top"]


def test_reparam_keeps_the_site_in_the_draws():
    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("theta", dist.Normal(mu, 2.0).expand([3]))

    centred = numpyro.handlers.reparam(model, {"theta": LocScaleReparam(0)})
    target = from_numpyro(centred, space="model")
    assert set(target.like) == {"mu", "theta_decentered"}
    x = {"mu": jnp.asarray(1.0), "theta_decentered": jnp.ones(3)}
    np.testing.assert_allclose(target.describe(x)["theta"], 3.0)


def test_discrete_sites_are_counted_from_their_smallest_value():
    def model():
        z = numpyro.sample("z", dist.DiscreteUniform(3, 6))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=5.0)

    target = from_numpyro(model)
    assert target.num_values() == {"z": 4}
    assert not target.has_gradient
    assert target.space.to_model({"z": jnp.asarray(1)})["z"] == 4
    values = [target.log_density({"z": jnp.asarray(i)}) for i in range(4)]
    assert int(np.argmax(values)) == 2


def test_subsampled_plates_warn_and_name_the_elbo():
    data = np.linspace(-1, 1, 20)

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 20, subsample_size=5):
            batch = numpyro.subsample(jnp.asarray(data), event_dim=0)
            numpyro.sample("y", dist.Normal(mu, 1), obs=batch)

    with pytest.warns(UserWarning, match=r"plate 'rows'.*softcvi.ELBO"):
        target = from_numpyro(model)
    mu = {"mu": jnp.asarray(0.3)}
    whole = dist.Normal(0, 1).log_prob(0.3) + dist.Normal(0.3, 1).log_prob(data).sum()
    np.testing.assert_allclose(target.log_density(mu), whole, rtol=1e-5)
    keys = jax.random.split(jax.random.key(0), 2000)
    parts = jax.jit(jax.vmap(lambda k: target.log_density(mu, k)))(keys)
    np.testing.assert_allclose(parts.mean(), whole, rtol=0.01)


@pytest.mark.slow
def test_eight_schools_with_the_default_guide(schools_fit):
    assert schools_fit.verdict.level != "not trusted"
    draws = schools_fit.posterior.resample(jax.random.key(1), 20_000)
    assert_like_nuts(draws)


def test_predictions_have_the_mean_and_spread_of_the_data(schools_fit, non_centred):
    # Draws of the answer: the guide's own have a tail in tau whose variance
    # cannot be measured with 4,000 draws.
    answer = schools_fit.sample(jax.random.key(1), 4000)
    draws = posterior_predictive(jax.random.key(0), schools_fit.posterior, draws=answer)
    assert draws["obs"].shape == (4000, 8)
    spread = np.sqrt(np.var(np.asarray(answer["theta"]), axis=0) + ERRORS**2)
    np.testing.assert_allclose(draws["obs"].std(0), spread, rtol=0.1)
    fewer = posterior_predictive(
        jax.random.key(0), schools_fit.posterior, ERRORS / 100, effects=EFFECTS, n=50
    )
    assert fewer["obs"].shape == (50, 8)


def test_programs_of_the_adapter_are_kept_on_disk_like_those_of_a_fit(monkeypatch):
    asked = []
    monkeypatch.setattr(_model, "cache_by_default", lambda: asked.append(True))
    seen = []

    def model():
        seen.append(bool(asked))
        numpyro.sample("x", dist.Normal(0, 1))

    from_numpyro(model)
    assert seen
    assert all(seen)
