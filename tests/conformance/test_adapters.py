"""The batteries of targets, guides and spaces over those of the adapters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
import pytest
from jax.flatten_util import ravel_pytree

from softcvi import adapters
from softcvi.adapters.numpyro._space import DynamicSpace
from softcvi.adapters.pymc._target import PyMCSpace
from softcvi.adapters.stan._space import StanSpace
from softcvi.guides import AbstractGuide
from softcvi.targets import AbstractSpace, AbstractTarget, Structure
from tests.adapters.stan.programs import Hierarchy

DATA = np.array([0.5, 1.5, 1.0])


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1).expand([2]).to_event(1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    theta = numpyro.sample("theta", dist.Normal(mu[0], tau))
    numpyro.sample("y", dist.Normal(theta, 1), obs=y)


def from_pymc():
    with pm.Model() as same:
        mu = pm.Normal("mu", 0, 1, shape=2)
        tau = pm.HalfNormal("tau", 1)
        theta = pm.Normal("theta", mu[0], tau)
        pm.Normal("y", theta, 1, observed=DATA)
    return adapters.from_pymc(same)


def log_density(x):
    value = -0.5 * float(np.sum(x["mu"] ** 2)) - float(x["tau"]) ** 2
    return value - 0.5 * float(x["theta"]) ** 2


def from_callable():
    like = {"mu": jnp.zeros(2), "tau": jnp.zeros(()), "theta": jnp.zeros(())}
    return adapters.from_callable(log_density, like)


TARGETS = {
    adapters.NumPyroTarget: lambda: adapters.from_numpyro(model, DATA),
    adapters.PyMCTarget: from_pymc,
    adapters.CallbackTarget: from_callable,
    # The same program in NumPy: compiled ones are in the tests of that adapter.
    adapters.StanTarget: lambda: adapters.StanTarget(Hierarchy(DATA)),
}
SPACES = {
    DynamicSpace: lambda: adapters.from_numpyro(model, DATA),
    adapters.SiteSpace: lambda: adapters.from_numpyro(model, DATA, decentre=False),
    PyMCSpace: from_pymc,
    StanSpace: lambda: adapters.StanTarget(Hierarchy(DATA)),
}


def test_the_batteries_know_every_class_of_the_adapters(exported):
    assert exported(adapters, AbstractTarget) == set(TARGETS)
    assert exported(adapters, AbstractSpace) <= set(SPACES)
    assert exported(adapters, AbstractGuide) == {adapters.NumPyroGuide}


@pytest.mark.parametrize("cls", TARGETS, ids=lambda cls: cls.__name__)
def test_targets_have_a_density_a_start_and_names(cls):
    target = TARGETS[cls]()
    assert type(target) is cls

    @eqx.filter_jit
    def program(target, keys):
        def one(key):
            particle = target.initial_particle(key)
            shown = target.describe(target.space.to_model(particle))
            return particle, target.log_density(particle), shown

        return jax.vmap(one)(keys)

    particle, value, shown = program(target, jax.random.split(jax.random.key(0), 5))
    one = jax.tree_util.tree_map(lambda leaf: leaf[0], particle)
    assert target.structure.difference(Structure(one)) is None
    assert value.shape == (5,)
    assert np.all(np.isfinite(value))
    assert set(shown) == {"mu", "tau", "theta"}
    if target.has_gradient:
        gradient = jax.grad(lambda u: target.log_density(u))(one)
        assert all(np.all(np.isfinite(leaf)) for leaf in gradient.values())


@pytest.mark.parametrize("cls", SPACES, ids=lambda cls: cls.__name__)
def test_spaces_go_there_and_back_with_the_right_volume(cls):
    target = SPACES[cls]()
    space = target.space
    assert type(space) is cls

    @jax.jit
    def program(key):
        u = target.initial_particle(key)
        x, log_det = space.to_model_and_log_det(u)
        back, inverse = space.from_model_and_log_det(x)
        flat, unravel = ravel_pytree(u)
        jacobian = jax.jacobian(lambda v: ravel_pytree(space.to_model(unravel(v)))[0])
        exact = jnp.linalg.slogdet(jacobian(flat))[1]
        return flat, ravel_pytree(back)[0], log_det, inverse, exact

    flat, back, log_det, inverse, exact = program(jax.random.key(0))
    np.testing.assert_allclose(back, flat, atol=1e-4)
    np.testing.assert_allclose(log_det, exact, atol=1e-4)
    np.testing.assert_allclose(inverse, -log_det, atol=1e-4)


def test_guides_score_what_they_draw_and_have_gradients():
    def guide(y):
        loc = numpyro.param("loc", jnp.array([0.1, -0.2]))
        scale = numpyro.param("scale", 0.7, constraint=dist.constraints.positive)
        mu = numpyro.sample("mu", dist.Normal(loc, scale).to_event(1))
        numpyro.sample("tau", dist.LogNormal(0.0, scale))
        numpyro.sample("theta", dist.Normal(mu[1], scale))

    target = adapters.from_numpyro(model, DATA)
    wrapped = adapters.numpyro_guide(guide, target)

    @eqx.filter_jit
    def program(wrapped, keys):
        particles, joint = jax.vmap(wrapped.sample_and_log_prob)(keys)

        def score(wrapped):
            values = jax.vmap(wrapped.log_prob)(particles)
            return jnp.sum(values), values

        gradient, again = eqx.filter_grad(score, has_aux=True)(wrapped)
        return particles, joint, again, gradient.params

    keys = jax.random.split(jax.random.key(0), 16)
    particles, joint, again, gradient = program(wrapped, keys)
    one = jax.tree_util.tree_map(lambda leaf: leaf[0], particles)
    assert target.structure.difference(Structure(one)) is None
    np.testing.assert_allclose(joint, again, rtol=1e-5, atol=1e-5)
    assert all(np.any(np.asarray(leaf) != 0) for leaf in gradient.values())
