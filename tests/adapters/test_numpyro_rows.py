"""NumPyro models with many rows: the same density in blocks, in bounded memory."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from softcvi.adapters import _row_blocks, from_numpyro

_NUM_ROWS = 5_003


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(_row_blocks, "MANY_ROWS", 1_000)


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(_NUM_ROWS, 2)).astype(np.float32)
    group = rng.integers(3, size=_NUM_ROWS)
    y = x[:, 0] + group + rng.normal(size=_NUM_ROWS)
    return {"x": x, "group": group, "y": y.astype(np.float32)}


def grouped(x, group, y):
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    with numpyro.plate("groups", 3):
        a = numpyro.sample("a", dist.Normal(0, tau))
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(a[group] + x @ b, 1), obs=y)


def test_a_model_in_blocks_has_the_density_and_derivatives_of_the_whole(data):
    target = from_numpyro(grouped, **data)
    assert target.rows is not None
    assert target.rows.sites == ("y",)
    whole = dataclasses.replace(target, rows=None)
    points = {"tau": -0.1 * jnp.ones(2), "a": jnp.ones((2, 3)), "b": jnp.ones((2, 2))}

    def values(target):
        both = jax.jit(jax.vmap(jax.value_and_grad(lambda p: target.log_density(p))))
        return jax.tree_util.tree_leaves(both(points))

    def curvature(target):
        at = {name: value[0] for name, value in points.items()}
        return jax.tree_util.tree_leaves(
            jax.jit(jax.hessian(lambda p: target.log_density(p)))(at)
        )

    for of in (values, curvature):
        for blocks, plain in zip(of(target), of(whole), strict=True):
            # Sums of thousands of terms of order one, in single precision.
            np.testing.assert_allclose(blocks, plain, rtol=1e-4, atol=0.1)


def test_memory_is_that_of_a_block_and_not_of_all_rows_for_each_particle():
    n, particles = 1_000_000, 16

    def model(x, y):
        b = numpyro.sample("b", dist.Normal(0, 1).expand([2]).to_event(1))
        with numpyro.plate("rows", n):
            numpyro.sample("y", dist.Normal(x @ b, 1), obs=y)

    target = from_numpyro(model, np.ones((n, 2), np.float32), np.ones(n, np.float32))

    @eqx.filter_jit
    def densities(target, points):
        density = jax.value_and_grad(lambda b: target.log_density({"b": b}))
        return jax.vmap(density)(points)

    def bytes_beside_the_data(target):
        program = densities.lower(target, jnp.zeros((particles, 2))).compile()
        return program.compiled.memory_analysis().temp_size_in_bytes

    assert bytes_beside_the_data(target) < 3 * 4 * n
    whole = dataclasses.replace(target, rows=None)
    assert bytes_beside_the_data(whole) > particles * 4 * n


def centred(x, y, group):
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal((x - x.mean(axis=0)) @ b, 1), obs=y)


def autoregressive(x, y, group):
    b = numpyro.sample("b", dist.Normal(0, 1))
    before = jnp.concatenate([jnp.zeros(1), y[:-1]])
    numpyro.sample("y", dist.Normal(b * before, 1), obs=y)


def with_members(x, y, group):
    with numpyro.plate("rows", len(y)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)


def centred_predictor(x, y, group):
    # What other rows add is a ten-thousandth of a term.
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]).to_event(1))
    predictor = x @ b
    numpyro.sample("y", dist.Normal(predictor - predictor.mean(), 1), obs=1e4 + y)


def scaled_by_number(x, y, group):
    b = numpyro.sample("b", dist.Normal(0, len(y)))
    numpyro.sample("y", dist.Normal(b, 1), obs=y)


@pytest.mark.parametrize(
    "model",
    [centred, centred_predictor, autoregressive, with_members, scaled_by_number],
)
def test_a_model_whose_rows_are_not_one_by_one_is_left_as_it_is(model, data):
    assert from_numpyro(model, **data).rows is None


def test_a_plate_may_have_its_size_from_anywhere(data):
    def model(y):
        b = numpyro.sample("b", dist.Normal(0, 1))
        with numpyro.plate("rows", _NUM_ROWS):
            numpyro.sample("y", dist.Normal(b, 1), obs=y)

    target = from_numpyro(model, data["y"])
    assert target.rows is not None
    whole = dataclasses.replace(target, rows=None)
    point = {"b": jnp.ones(())}
    np.testing.assert_allclose(
        target.log_density(point), whole.log_density(point), rtol=1e-5
    )


def test_a_sample_of_the_rows_counts_as_all_of_them(data):
    target = from_numpyro(grouped, **data)
    few = target.rows.thinned(500)
    assert few.data.num_rows == 500
    point = {"tau": jnp.zeros(()), "a": jnp.arange(3.0), "b": jnp.array([1.0, 0.0])}
    whole, part = target, dataclasses.replace(target, rows=few)
    # Terms have a standard deviation of 0.7; so does the sum of 500, 10 times over.
    error = 0.7 * np.sqrt(500) * _NUM_ROWS / 500
    difference = part.log_density(point) - whole.log_density(point)
    assert abs(float(difference)) < 4 * error
