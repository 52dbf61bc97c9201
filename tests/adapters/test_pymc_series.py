"""Random walks and autoregressions of PyMC are fitted by their steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from softcvi.adapters import from_pymc  # noqa: E402
from softcvi.targets import SpaceOfModel  # noqa: E402

RNG = np.random.default_rng(0)


def walks():
    scale = pm.HalfNormal("scale", 1, shape=3)
    drift = pm.Normal("drift", 0, 1)
    first = pm.Normal.dist(1.0, 2.0)
    x = pm.GaussianRandomWalk("x", mu=drift, sigma=scale, init_dist=first, shape=(3, 5))
    pm.Normal("y", x, 1.0, observed=RNG.normal(size=(3, 5)))


def autoregression():
    rho = pm.Uniform("rho", -1, 1, shape=1)
    scale = pm.HalfNormal("scale", 1)
    first = pm.Normal.dist(0, 2.0)
    x = pm.AR("x", rho, sigma=scale, init_dist=first, shape=6)
    pm.Normal("y", x, 1.0, observed=RNG.normal(size=6))


def second_order():
    rho = pm.Normal("rho", 0, 0.3, shape=3)
    scale = pm.HalfNormal("scale", 1)
    first = pm.Normal.dist(0, 2.0)
    x = pm.AR("x", rho, sigma=scale, constant=True, init_dist=first, shape=(2, 7))
    pm.Normal("y", x, 1.0, observed=RNG.normal(size=(2, 7)))


MODELS = [walks, autoregression, second_order]


@pytest.fixture(scope="module", params=MODELS, ids=[model.__name__ for model in MODELS])
def target(request):
    with pm.Model() as model:
        request.param()
    return from_pymc(model)


def moderate(target):
    leaves = {n: leaf.shape for n, leaf in target.structure.like.items()}
    keys = jax.random.split(jax.random.key(0), len(leaves))
    pairs = zip(leaves.items(), keys, strict=True)
    return {n: 0.5 * jax.random.normal(key, shape) for (n, shape), key in pairs}


def test_a_step_is_a_standard_normal_and_the_density_is_that_of_the_model(target):
    assert target.space.decentred == ("x",)
    u = moderate(target)
    x, log_det = target.space.to_model_and_log_det(u)
    again, back = target.space.from_model_and_log_det(x)
    for name, value in u.items():
        np.testing.assert_allclose(again[name], value, atol=2e-5)
    np.testing.assert_allclose(back, -log_det, rtol=1e-5)
    # As it is written the density is PyMC's own, which from_pymc has checked.
    written = target.in_space(SpaceOfModel())
    v, written_det = written.space.from_model_and_log_det(x)
    exact = written.log_density(v) + written_det + log_det
    np.testing.assert_allclose(target.log_density(u), exact, rtol=1e-5)


def test_a_series_that_the_data_determine_is_fitted_as_the_model_writes_it(target):
    mean = moderate(target)
    spread = {name: jnp.full_like(value, 0.1) for name, value in mean.items()}
    assert target.recentred(mean, spread).space.decentred == ()


def heavy_tailed():
    step = pm.StudentT.dist(4, sigma=pm.HalfNormal("scale", 1))
    first = pm.Normal.dist(0, 1)
    pm.RandomWalk("x", init_dist=first, innovation_dist=step, steps=4)


def long():
    scale = pm.HalfNormal("scale", 1)
    pm.GaussianRandomWalk("x", sigma=scale, init_dist=pm.Normal.dist(0, 1), shape=201)


@pytest.mark.parametrize("make", [heavy_tailed, long])
def test_other_series_stay_as_they_are_written(make):
    with pm.Model() as model:
        make()
    assert from_pymc(model).space.decentred == ()
