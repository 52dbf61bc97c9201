"""What else NumPyro models are made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib.control_flow import cond, scan

import softcvi
from softcvi.adapters import from_numpyro, to_arviz

RNG = np.random.default_rng(0)
Y = RNG.normal(size=12)


def tree_of(target, **options):
    pytest.importorskip("arviz_base")
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    return to_arviz(posterior, n=5, **options)


def walk(y, reverse=False):
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    drift = numpyro.sample("drift", dist.Normal(0, scale))

    def step(level, value):
        level = numpyro.sample("level", dist.Normal(level + drift, scale))
        numpyro.sample("y", dist.Normal(level, 1), obs=value)
        return level, None

    scan(step, 0.0, y, reverse=reverse)


def log_density_of_walk(scale, drift, level):
    before = jnp.concatenate([jnp.zeros(1), level[:-1]])
    exact = dist.HalfNormal(1).log_prob(scale)
    exact += dist.Normal(0, scale).log_prob(drift)
    exact += dist.Normal(before + drift, scale).log_prob(level).sum()
    return exact + dist.Normal(level, 1).log_prob(Y).sum()


def test_sites_inside_scan_are_fitted_by_their_steps():
    target = from_numpyro(walk, Y)
    assert target.space.decentred == ("drift", "level")
    steps = jnp.linspace(-1.0, 1.0, 12)
    u = {"scale": jnp.log(0.5), "drift": jnp.asarray(0.8), "level": steps}
    x, log_det = target.space.to_model_and_log_det(u)
    level = jnp.cumsum(0.4 + 0.5 * steps)
    np.testing.assert_allclose(x["level"], level, rtol=1e-5)
    np.testing.assert_allclose(log_det, 14 * jnp.log(0.5), rtol=1e-5)
    exact = log_density_of_walk(0.5, 0.4, level) + log_det
    np.testing.assert_allclose(target.log_density(u), exact, rtol=1e-5)
    again, back = target.space.from_model_and_log_det(x)
    np.testing.assert_allclose(again["level"], steps, atol=1e-5)
    np.testing.assert_allclose(back, -log_det, rtol=1e-5)
    assert tree_of(target)["posterior"]["level"].shape == (1, 5, 12)


def test_a_series_that_the_data_determine_is_fitted_as_the_model_writes_it():
    target = from_numpyro(walk, Y)
    mean = {"scale": jnp.log(0.5), "drift": jnp.asarray(0.8), "level": jnp.zeros(12)}
    spread = {name: jnp.full_like(value, 0.1) for name, value in mean.items()}
    chosen = target.recentred(mean, spread)
    assert "level" not in chosen.space.decentred
    level = jnp.linspace(0.0, 1.0, 12)
    x = {"scale": jnp.asarray(0.5), "drift": jnp.asarray(0.4), "level": level}
    u, log_det = chosen.space.from_model_and_log_det(x)
    np.testing.assert_allclose(u["level"], level, rtol=1e-6)
    exact = log_density_of_walk(0.5, 0.4, level) - log_det
    np.testing.assert_allclose(chosen.log_density(u), exact, rtol=1e-5)


def test_a_long_series_stays_as_it_is_written():
    assert from_numpyro(walk, np.zeros(201)).space.decentred == ("drift",)


def test_sites_of_a_scan_from_last_to_first_stay_as_they_are_written():
    target = from_numpyro(walk, Y, reverse=True)
    assert target.space.decentred == ("drift",)
    assert "from last to first" in target.notes[0]


def test_sites_inside_cond_stay_as_they_are_written():
    def model(y):
        scale = numpyro.sample("scale", dist.HalfNormal(1))

        def branch(scale):
            return numpyro.sample("b", dist.Normal(0, scale))

        b = cond(y[0] > 0, branch, branch, scale)
        numpyro.sample("y", dist.Normal(b, 1), obs=y)

    target = from_numpyro(model, Y)
    assert "cond" in target.notes[0]
    u = {"scale": jnp.log(0.5), "b": jnp.asarray(0.3)}
    exact = dist.HalfNormal(1).log_prob(0.5) + jnp.log(0.5)
    exact += dist.Normal(0, 0.5).log_prob(0.3) + dist.Normal(0.3, 1).log_prob(Y).sum()
    np.testing.assert_allclose(target.log_density(u), exact, rtol=1e-5)


def test_scopes_become_dots_in_a_tree():
    def part():
        return numpyro.sample("mu", dist.Normal(0, 1))

    def model(y):
        left = numpyro.handlers.scope(part, prefix="left")()
        right = numpyro.handlers.scope(part, prefix="right")()
        numpyro.sample("y", dist.Normal(left + right, 1), obs=y)

    target = from_numpyro(model, Y)
    assert set(target.like) == {"left/mu", "right/mu"}
    assert set(tree_of(target)["posterior"].data_vars) == {"left.mu", "right.mu"}


def test_subsampled_plates_are_whole_in_a_tree():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 12, subsample_size=4):
            batch = numpyro.subsample(y, event_dim=0)
            numpyro.sample("y", dist.Normal(mu, 1), obs=batch)

    with pytest.warns(UserWarning, match="subsamples"):
        target = from_numpyro(model, jnp.asarray(Y))
    tree = tree_of(target, prior=True)
    for group in ("log_likelihood", "posterior_predictive", "prior_predictive"):
        assert tree[group]["y"].dims == ("chain", "draw", "rows")
        assert tree[group]["y"].shape == (1, 5, 12)
    np.testing.assert_allclose(tree["observed_data"]["y"], Y, rtol=1e-6)


def test_numpyros_predictive_takes_the_draws():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        twice = numpyro.deterministic("twice", 2 * mu)
        with numpyro.plate("rows", 12):
            numpyro.sample("y", dist.Normal(twice, 1), obs=y)

    target = from_numpyro(model, Y)
    posterior = softcvi.Posterior(softcvi.guides.mean_field(target), target)
    draws = posterior.sample(jax.random.key(0), 7)
    predictive = numpyro.infer.Predictive(model, posterior_samples=draws, batch_ndims=1)
    assert predictive(jax.random.key(1), None)["y"].shape == (7, 12)


def test_networks_with_priors_and_trained_networks():
    nn = pytest.importorskip("flax.linen")
    from numpyro.contrib.module import flax_module, random_flax_module

    x = RNG.normal(size=(12, 2))

    def bayesian(x, y):
        net = random_flax_module(
            "net", nn.Dense(1), prior=dist.Normal(0, 1), input_shape=(2,)
        )
        numpyro.sample("y", dist.Normal(net(x)[:, 0], 1), obs=y)

    target = from_numpyro(bayesian, x, Y)
    assert {leaf.shape for leaf in target.like.values()} == {(1,), (2, 1)}
    assert not target.model_parameters()
    # Nothing of the network is left to train, which a fit asks.
    assert not any(jax.tree_util.tree_leaves(target.trainable()))

    def trained(x, y):
        net = flax_module("net", nn.Dense(1), input_shape=(2,))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(net(x)[:, 0], sigma), obs=y)

    target = from_numpyro(trained, x, Y)
    assert set(target.like) == {"sigma"}
    assert set(target.model_parameters()) == {"net$params"}


def _nnx(name, prior=None):
    nnx = pytest.importorskip("flax.nnx")
    from numpyro.contrib.module import nnx_module, random_nnx_module

    layer = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    if prior is None:
        return nnx_module(name, layer)
    return random_nnx_module(name, layer, prior=prior)


def _eqx(name, prior=None):
    from numpyro.contrib.module import eqx_module, random_eqx_module

    layer = eqx.nn.Linear(2, 1, key=jax.random.key(0))
    if prior is None:
        return jax.vmap(eqx_module(name, layer))
    return jax.vmap(random_eqx_module(name, layer, prior=prior))


@pytest.mark.slow
@pytest.mark.parametrize("module", [_nnx, _eqx])
def test_modules_of_other_libraries_with_priors_and_trained(module):
    x = jnp.asarray(RNG.normal(size=(12, 2)))

    def bayesian(x, y):
        net = module("net", prior=dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(net(x)[:, 0], 1), obs=y)

    target = from_numpyro(bayesian, x, Y)
    assert sorted(leaf.size for leaf in target.like.values()) == [1, 2]
    assert jnp.isfinite(target.log_density(target.initial_particle(jax.random.key(0))))

    def trained(x, y):
        net = module("net")
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(net(x)[:, 0], sigma), obs=y)

    target = from_numpyro(trained, x, Y)
    assert set(target.like) == {"sigma"}
    assert set(target.model_parameters()) == {"net$params"}
    assert jnp.isfinite(target.log_density(target.initial_particle(jax.random.key(0))))


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray])
def test_a_model_may_count_its_groups_from_the_data(array):
    group = array([0, 1, 1, 2])

    def model(group, y):
        with numpyro.plate("groups", int(group.max()) + 1):
            effect = numpyro.sample("effect", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(effect[group], 1), obs=y)

    target = from_numpyro(model, group, y=array([1.0, 2.0, 3.0, 4.0]))
    assert target.structure.like["effect"].shape == (3,)
    effect = jnp.array([0.5, 1.0, -1.0])
    exact = dist.Normal(0, 1).log_prob(effect).sum()
    means = effect[np.asarray(group)]
    exact += dist.Normal(means, 1).log_prob(jnp.arange(1.0, 5.0)).sum()
    value = jax.jit(lambda x: target.log_density(x))({"effect": effect})
    np.testing.assert_allclose(value, exact, rtol=1e-5)
