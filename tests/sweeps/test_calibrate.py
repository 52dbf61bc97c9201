"""Simulation-based calibration: right posteriors pass, narrow ones do not."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import softcvi
from softcvi import guides
from softcvi.adapters import from_numpyro
from softcvi.sweeps import Calibration, Outcome, SerialExecutor


def simulate(key):
    one, two = jax.random.split(key)
    theta = jax.random.normal(one, (2,))
    return {"theta": theta}, theta[0] + theta[1] + jax.random.normal(two, (3,))


def log_prob(parameters, y):
    theta = parameters["theta"]
    return -0.5 * jnp.sum(theta**2) - 0.5 * jnp.sum((y - jnp.sum(theta)) ** 2)


@pytest.fixture(scope="module")
def target():
    return softcvi.DensityTarget(
        log_prob, {"theta": np.zeros(2, np.float32)}, observed=jnp.zeros(3)
    )


def test_a_right_guide_is_calibrated(target):
    check = softcvi.calibrate(
        jax.random.key(0),
        target,
        simulate=simulate,
        num_datasets=60,
        steps=500,
        progress=False,
    )
    assert check.calibrated
    assert set(check.ranks) == {"theta[0]", "theta[1]"}
    assert check.num_datasets == 60
    assert all(np.all((r >= 0) & (r <= check.num_draws)) for r in check.ranks.values())
    assert check.summary().startswith("calibrated: 60 data sets, 0 failed")


class Elsewhere(SerialExecutor):
    """What a worker does, in this process: it gets its task as bytes."""

    def run(self, function, batches):
        sent = pickle.dumps(function)
        return super().run(pickle.loads(sent), pickle.loads(pickle.dumps(batches)))


def test_batches_in_other_processes_give_the_same_ranks(target):
    settings = {"num_datasets": 20, "num_draws": 50, "steps": 100, "progress": False}
    settings["simulate"], key = simulate, jax.random.key(0)
    here = softcvi.calibrate(key, target, **settings)
    there = softcvi.calibrate(key, target, **settings, executor=Elsewhere())
    for name, ranks in here.ranks.items():
        # Sixteen and four fits at once, rounded otherwise than twenty.
        np.testing.assert_allclose(there.ranks[name], ranks, atol=2)


def test_a_batch_that_fails_is_told(target):
    class Broken(SerialExecutor):
        def run(self, function, batches):
            yield Outcome(0, error="its worker died 3 times")

    with pytest.raises(RuntimeError, match="its worker died 3 times"):
        softcvi.calibrate(
            jax.random.key(0),
            target,
            simulate=simulate,
            executor=Broken(),
            progress=False,
        )


def test_posteriors_that_are_too_narrow_are_noticed():
    """The density believes in data three times as precise as they are."""

    def of_the_sum(key):
        parameters, y = simulate(key)
        return jnp.sum(parameters["theta"]), y

    def too_sure(total, y):
        return -0.25 * total**2 - 4.5 * jnp.sum((y - total) ** 2)

    target = softcvi.DensityTarget(
        too_sure, np.zeros((), np.float32), observed=jnp.zeros(3)
    )
    check = softcvi.calibrate(
        jax.random.key(0),
        target,
        simulate=of_the_sum,
        num_datasets=40,
        steps=500,
        progress=False,
    )
    assert not check.calibrated
    assert [row.finding for row in check.rows] == ["too narrow"]
    assert check.rows[0].coverage[1] < 0.7


@pytest.mark.parametrize(
    ("draw", "finding"),
    [
        (lambda rng: rng.uniform(size=400), "calibrated"),
        (lambda rng: rng.beta(0.5, 0.5, size=400), "too narrow"),
        (lambda rng: rng.beta(3.0, 3.0, size=400), "too wide"),
        (lambda rng: rng.beta(2.0, 1.0, size=400), "biased"),
    ],
)
def test_findings_from_ranks(draw, finding):
    places = draw(np.random.default_rng(0))
    ranks = {"x": np.floor(places * 101).astype(int)}
    check = Calibration(ranks, num_draws=100, num_failed=0)
    assert check.rows[0].finding == finding
    assert check.calibrated == (finding == "calibrated")


def test_data_of_another_shape_are_refused(target):
    def longer(key):
        parameters, y = simulate(key)
        return parameters, jnp.concatenate([y, y])

    key, quiet = jax.random.key(0), {"progress": False}
    with pytest.raises(ValueError, match="simulate: its data have shapes"):
        softcvi.calibrate(key, target, simulate=longer, **quiet)
    bare = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
    with pytest.raises(ValueError, match="target: its observed is None"):
        softcvi.calibrate(key, bare, guides.mean_field(bare), simulate=simulate)
    with pytest.raises(NotImplementedError, match="give simulate="):
        softcvi.calibrate(key, target, **quiet)
    with pytest.raises(TypeError, match="target"):
        softcvi.calibrate(key, simulate, target, **quiet)


def numpyro_model(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.LogNormal(0, 0.3))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x, sd), obs=y)


@pytest.fixture(scope="module")
def numpyro_target():
    x = jnp.linspace(-1, 1, 8)
    return from_numpyro(numpyro_model, x, y=2 * x)


def test_a_numpyro_model_simulates_its_own_data(numpyro_target):
    settings = {"num_datasets": 60, "steps": 500, "progress": False}
    check = softcvi.calibrate(jax.random.key(0), numpyro_target, **settings)
    assert check.calibrated
    assert set(check.ranks) == {"slope", "sd"}

    def too_spread(key):
        parameters, observed = numpyro_target.simulate(key)
        return parameters, {"y": 3 * observed["y"]}

    settings["simulate"] = too_spread
    check = softcvi.calibrate(jax.random.key(0), numpyro_target, **settings)
    assert {row.name: row.finding for row in check.rows}["sd"] == "biased"


def test_numpyro_models_go_to_other_processes(numpyro_target):
    settings = {"num_datasets": 4, "num_draws": 50, "steps": 100, "progress": False}
    key = jax.random.key(0)
    here = softcvi.calibrate(key, numpyro_target, **settings)
    there = softcvi.calibrate(key, numpyro_target, **settings, executor=Elsewhere())
    for name, ranks in here.ranks.items():
        np.testing.assert_allclose(there.ranks[name], ranks, atol=2)
