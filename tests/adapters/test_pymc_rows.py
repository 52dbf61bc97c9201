"""PyMC models with many rows: the same density in blocks, in bounded memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softcvi.adapters import _row_blocks, from_pymc

pm = pytest.importorskip("pymc")
pt = pytest.importorskip("pytensor.tensor")
# Says how PyTensor was installed; nothing here needs to be fast.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

_NUM_ROWS = 5_003


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(_row_blocks, "MANY_ROWS", 1_000)


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_NUM_ROWS, 2))
    group = rng.integers(3, size=_NUM_ROWS)
    y = x[:, 0] + group + rng.normal(size=_NUM_ROWS)
    return {"x": x, "group": group, "y": y}


def grouped(x, group, y):
    tau = pm.HalfNormal("tau", 1)
    a = pm.Normal("a", 0, tau, shape=3)
    b = pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", a[group] + x @ b, 1, observed=y)


def computed_of_data(x, group, y):
    x, y = pm.Data("x", x), pm.Data("outcome", y)
    b = pm.Normal("b", 0, 1, shape=2)
    # Of the data all rows are known.
    centred = x - x.mean(axis=0)
    trend = pt.arange(y.shape[0]) / y.shape[0]
    line = pt.alloc(b[0], _NUM_ROWS) * trend
    pm.Normal("y", centred @ b + line, y.shape[0] * 1e-3, observed=y, shape=_NUM_ROWS)


def several(x, group, y):
    means = pm.Normal("means", 0, 2, shape=2)
    pm.NormalMixture("y", [0.3, 0.7], means, 1.0, observed=y)
    pm.Poisson("groups", pt.exp(means[0]), observed=group)
    pm.MvNormal("x", means, np.eye(2), observed=x)
    pm.Normal("columns", means, 1, observed=x)
    pm.Potential("squares", -0.5 * (y - means[1] * x[:, 1]) ** 2)
    pm.Normal("few", means[0], 1, observed=y[:10])


def lagged(x, group, y):
    b = pm.Normal("b", 0, 1)
    y = pm.Data("outcome", y)
    pm.Normal("y", b * y[:-1], 1, observed=y[1:])


def by_minibatch(x, group, y):
    x, y = pm.Minibatch(x, y, batch_size=50)
    b = pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", x @ b, 1, observed=y, total_size=_NUM_ROWS)


@pytest.mark.filterwarnings("ignore:model. pm.Minibatch is set aside")
@pytest.mark.parametrize(
    ("write", "sites"),
    [
        (grouped, ("y",)),
        (computed_of_data, ("y",)),
        (several, ("y", "groups", "x", "columns", "squares")),
        (lagged, ("y",)),
        (by_minibatch, ("y",)),
    ],
)
def test_a_model_in_blocks_has_the_density_and_derivatives_of_the_whole(
    write, sites, data, monkeypatch
):
    with pm.Model() as model:
        write(**data)
    target = from_pymc(model)
    assert target.rows is not None
    assert target.rows.sites == sites
    monkeypatch.setattr(_row_blocks, "MANY_ROWS", 1_000_000)
    whole = from_pymc(model)
    assert whole.rows is None
    particles = [target.initial_particle(jax.random.key(seed)) for seed in range(2)]
    points = jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *particles)

    def values(target):
        density = jax.value_and_grad(lambda p: target.log_density(p))
        return jax.tree_util.tree_leaves(jax.jit(jax.vmap(density))(points))

    for blocks, plain in zip(values(target), values(whole), strict=True):
        np.testing.assert_allclose(blocks, plain, rtol=1e-4, atol=0.1)


def centred_predictor(x, group, y):
    b = pm.Normal("b", 0, 1, shape=2)
    predictor = pt.dot(x, b)
    # What other rows add is a ten-thousandth of a term.
    pm.Normal("y", predictor - predictor.mean(), 1, observed=1e4 + y)


def walking(x, group, y):
    b = pm.Normal("b", 0, 1)
    pm.Normal("y", pt.cumsum(b * x[:, 0]), 1, observed=y)


def neighbours(x, group, y):
    b = pm.Normal("b", 0, 1)
    pm.Normal("y", pt.roll(b * x[:, 0], 1), 1, observed=y)


def with_members(x, group, y):
    z = pm.Normal("z", 0, 1, shape=_NUM_ROWS)
    pm.Normal("y", z, 1, observed=y)


def as_one_series(x, group, y):
    scale = pm.HalfNormal("scale", 1)
    first = pm.Normal.dist(0, 1)
    pm.GaussianRandomWalk("y", sigma=scale, init_dist=first, observed=y)


def few(x, group, y):
    b = pm.Normal("b", 0, 1)
    pm.Normal("y", b, 1, observed=y[:500])


@pytest.mark.parametrize(
    "write",
    [
        centred_predictor,
        pytest.param(walking, marks=pytest.mark.slow),
        pytest.param(neighbours, marks=pytest.mark.slow),
        with_members,
        pytest.param(as_one_series, marks=pytest.mark.slow),
        few,
    ],
)
def test_a_model_whose_rows_are_not_one_by_one_is_left_as_it_is(write, data):
    with pm.Model() as model:
        write(**data)
    assert from_pymc(model).rows is None


@pytest.mark.slow
def test_memory_is_that_of_a_block_and_not_of_all_rows_for_each_particle(monkeypatch):
    n, particles = 300_000, 16
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Normal("y", rng.normal(size=(n, 2)) @ b, 1, observed=rng.normal(size=n))

    def bytes_beside_the_data(target):
        @eqx.filter_jit
        def densities(target, points):
            density = jax.value_and_grad(lambda b: target.log_density({"b": b}))
            return jax.vmap(density)(points)

        program = densities.lower(target, jnp.zeros((particles, 2))).compile()
        return program.compiled.memory_analysis().temp_size_in_bytes

    assert bytes_beside_the_data(from_pymc(model)) < 4 * n
    monkeypatch.setattr(_row_blocks, "MANY_ROWS", 10 * n)
    assert bytes_beside_the_data(from_pymc(model)) > particles * 4 * n


def test_a_sample_of_the_rows_counts_as_all_of_them(data):
    with pm.Model() as model:
        grouped(**data)
    target = from_pymc(model)
    few = target.rows.thinned(500)
    assert few.data.num_rows == 500
    part = eqx.tree_at(lambda t: t.rows, target, few)
    point = {"tau": jnp.zeros(()), "a": jnp.arange(3.0), "b": jnp.array([1.0, 0.0])}
    # Terms have a standard deviation of 0.7; so does the sum of 500, 10 times over.
    error = 0.7 * np.sqrt(500) * _NUM_ROWS / 500
    difference = part.log_density(point) - target.log_density(point)
    assert abs(float(difference)) < 4 * error
